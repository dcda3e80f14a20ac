"""What `import torch` loads by itself (entry points `torch.backends`, `torch.distributed.backends`).

It must never break `import torch`: when torch_cais cannot be used here, the backend's name is still
registered, and the reason is told to whoever asks for it.
"""


def register():
    """Makes `init_process_group("cais")` work. Cheap: nothing is loaded but a few small modules."""
    try:
        import torch_cais  # noqa: F401: registers the backend
    except Exception as error:
        _register_refusal(error)


def _register_refusal(error):
    import torch.distributed as dist

    def refuse(options, backend_options=None):
        raise error

    if dist.is_available() and not hasattr(dist.Backend, "CAIS"):
        dist.Backend.register_backend("cais", refuse, extended_api=True, devices=["cpu", "cuda"])
