"""The words of the form: one YAML file a locale, `{field: {label, help, options?: {option: label}}}`.

A help text may use `$default`, `$minimum` and `$maximum` of its field, and `$share`, the largest part of the context
window that may be reserved, in per cent. Only `config.form` reads these files, a running plugin does not.
"""
