"""gce inside other libraries, one module for each: nothing of gce imports them."""
