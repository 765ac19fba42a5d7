import subprocess
import sys
import unittest
from pathlib import Path

PUBLIC = {"prices": ["net", "gross"], "stock": ["Stock", "Empty"], "orders": ["Order", "place_order"]}


def python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Package(unittest.TestCase):
    def test_the_old_file_is_gone(self):
        self.assertFalse(Path("shop.py").exists())

    def test_names_are_the_same_objects(self):
        for module, names in PUBLIC.items():
            for name in names:
                python(f"import shop, shop.{module} as m; assert shop.{name} is m.{name}")
                python(f"from shop.{module} import {name} as one; import shop; assert shop.{name} is one")
                python(f"from shop import {name}; assert {name}.__module__ == 'shop.{module}'")
        python("import shop, shop.prices; assert shop.VAT == shop.prices.VAT == 19")

    def test_modules_are_light(self):
        loaded = "import sys; print(sorted(n for n in sys.modules if n.startswith('shop')))"
        for module in ("prices", "stock"):
            self.assertEqual(python(f"import shop.{module}; {loaded}"), f"['shop', 'shop.{module}']")
        python("import shop.orders")
        python("from shop.orders import Order; assert Order('x').total() == 0")

    def test_users_change_the_tax(self):
        for first in ("import shop", "from shop import gross", "import shop.prices", "from shop.prices import gross", "import shop.orders"):
            python(f"{first}\nimport shop\nshop.VAT = 7\nassert shop.gross(100) == 107\n"
                   "assert shop.VAT == 7\nassert shop.Order('x', [('a', 2, 50)]).total() == 107\n"
                   "import shop.prices\nassert shop.prices.gross(200) == 214")
        python("from shop import gross\nimport shop\nshop.VAT = 0\nassert gross(100) == 100\nshop.VAT = 50\nassert gross(100) == 150")

    def test_old_orders_load(self):
        pickle = str(Path(__file__).with_name("old-order.pickle"))
        code = f"import pickle; order = pickle.load(open({pickle!r}, 'rb')); print(order, order.total())"
        self.assertEqual(python(code), "Order(customer='Ada', lines=[('tea', 2, 350)]) 833")

    def test_orders_take_all_or_nothing(self):
        python("""
from shop import Empty, Order, Stock, place_order
stock = Stock(tea=3, cup=1)
assert place_order(stock, Order("Ada", [("tea", 1, 100)])) == 119
try:
    place_order(stock, Order("Ada", [("tea", 1, 100), ("cup", 2, 5)]))
except Empty as error:
    assert error.args == ("cup",)
else:
    raise AssertionError
assert stock.counts == {"tea": 2, "cup": 1}""")

    def test_it_runs_as_a_program(self):
        done = subprocess.run([sys.executable, "-m", "shop", "3", "250"], capture_output=True, text=True, timeout=20)
        self.assertEqual((done.stdout, done.returncode), ("892\n", 0), done.stderr)


unittest.main()
