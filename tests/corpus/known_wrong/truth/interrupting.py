def stop(flag):
    if not flag:
        return "go"
    raise KeyboardInterrupt
