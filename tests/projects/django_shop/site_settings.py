SECRET_KEY = "a test's"
ROOT_URLCONF = "site_urls"
ALLOWED_HOSTS = ["*"]
USE_TZ = True
INSTALLED_APPS = ["shop"]
MIDDLEWARE = ["shop.middleware.ShopMiddleware"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite3"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
