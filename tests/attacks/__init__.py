"""What strangers try: each attack runs against real processes on loopback, bounded in time and in size."""
