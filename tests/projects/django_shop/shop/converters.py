class LowerConverter:
    regex = "[A-Za-z]+"

    def to_python(self, value):
        return value.lower()

    def to_url(self, value):
        return value
