"""The console in a real browser, at real controllers."""
