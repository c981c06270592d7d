"""`cronring top`: what a cluster does now, as one frame after the other."""
