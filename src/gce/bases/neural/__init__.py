"""Small networks, trained by Adam: architectures, three trainers of the same steps, and kernels."""
