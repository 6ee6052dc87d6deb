"""Print the files of the pure modules, for `coverage report --include`."""

import configparser

setup = configparser.ConfigParser()
setup.read("setup.cfg", encoding="utf-8")
modules = setup["importlinter:contract:pure"]["source_modules"].split()
print(",".join(f"*/{module.replace('.', '/')}.py" for module in modules))  # noqa: T201
