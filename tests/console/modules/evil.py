"""<img src=x onerror=window.pwned=1><b id=pwned>a module's text</b>"""

from typing import Final

from cronring import Context, cron, every

MARKUP: Final = "<img src=x onerror=window.pwned=1><script>window.pwned=2</script><b id=pwned>evil</b>"
HIDDEN: Final = "\x1b[31mred\x1b]8;;http://evil.invalid/\x07\u202e\u2066\u200b\u0085\u00ad\u2028\u3164\U000e0041\r"
EVIL: Final = MARKUP + HIDDEN

Hostile = type(EVIL, (Exception,), {})


@every("2s")
async def raises(ctx: Context) -> None:
    """<img src=x onerror=window.pwned=1><b id=pwned>a verb's text</b>"""
    ctx.log.info(EVIL)
    ctx.report(**{EVIL: EVIL})
    print(EVIL)
    raise Hostile(EVIL)


@cron("0 0 1 1 *", payload={"text": "x"})
async def takes(payload: dict[str, str]) -> None:
    """<img src=x onerror=window.pwned=1><b id=pwned>another verb's text</b>"""
    print(payload)
