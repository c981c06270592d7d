"""What `cronring doctor` judges by: rules over what was seen, without I/O."""
