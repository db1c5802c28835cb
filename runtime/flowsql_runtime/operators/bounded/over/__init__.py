"""OVER windows of bounded inputs: frames of sorted rows."""
