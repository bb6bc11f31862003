"""Makes the wheel, for pip (PEP 517): a zip of the package and what the wheel's format asks for (PEP 427).

In: pyproject.toml, emberscope_spark/, and the modules of the page that notebooks draw with (profiler/ui). Out: a wheel. It needs nothing but Python, so `pip install ./deploy/spark` works
without a network.
"""

import base64
import hashlib
import os
import re
import runpy
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "emberscope_spark"


def _project():
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as file:
        text = file.read()
    return dict(re.findall(r'^(version|description|requires-python) = "([^"]*)"$', text, re.MULTILINE))


def _metadata(project):
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    return (
        "Metadata-Version: 2.1\nName: emberscope-spark\nVersion: {version}\nSummary: {description}\n"
        "License: MIT OR Apache-2.0\nRequires-Python: {requires-python}\n"
        "Description-Content-Type: text/markdown\n\n".format(**project) + readme
    )


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = _project()
    info = "%s-%s.dist-info" % (PACKAGE, project["version"])
    files = {}
    for name in sorted(os.listdir(os.path.join(HERE, PACKAGE))):
        if name.endswith((".py", ".js", ".css", ".json")):
            with open(os.path.join(HERE, PACKAGE, name), "rb") as file:
                files["%s/%s" % (PACKAGE, name)] = file.read()
    scripts = runpy.run_path(os.path.join(HERE, PACKAGE, "scripts.py"))
    for name, text in scripts["carried"]():
        files["%s/ui/%s" % (PACKAGE, name)] = text.encode()
    files[info + "/METADATA"] = _metadata(project).encode()
    wheel = "Wheel-Version: 1.0\nGenerator: wheel_of\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[info + "/WHEEL"] = wheel.encode()
    record = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append("%s,sha256=%s,%d" % (path, digest, len(content)))
    record.append(info + "/RECORD,,")
    files[info + "/RECORD"] = ("\n".join(record) + "\n").encode()
    name = "%s-%s-py3-none-any.whl" % (PACKAGE, project["version"])
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as out:
        for path, content in files.items():
            # A fixed time, so that the same sources make the same wheel.
            out.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return name


def get_requires_for_build_wheel(config_settings=None):
    return []
