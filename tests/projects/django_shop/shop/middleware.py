class ShopMiddleware:
    def __init__(self, get_response):
        self.get_response = get_response
        self.count = 0

    def __call__(self, request):
        self.count += 1
        response = self.get_response(request)
        response["X-Shop"] = "open" if response.status_code < 400 else "closed"
        return response
