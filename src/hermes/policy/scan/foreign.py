"""The plainest injections in other languages, in small letters without accents."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Each begins with words that must stand in a text before it is searched.
SENTENCES: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (tuple(words.split("|")), re.compile(pattern))
    for words, pattern in (
        # Spanish, Portuguese, Italian, Catalan
        ("ignora|ignore|olvid|desconsider|desatiend|esquec|dimentic",
         r"(?:ignor[ae]|olvid[ae]|desconsider[ae]|desatiend[ae]|esquec[ae]"
         r"|dimentic[ao])\w*\W+(?:\w+\W+){0,4}?"
         r"(?:instruc\w+|instrucoes|istruzioni|indicac\w+|regl[ae]s|regras|regole|ordenes"
         r"|directrices)"
         r"(?:\W+\w+){0,2}?\W+(?:anterior\w*|previ\w+|precedent\w*|de(?:l)? sist\w+|acima)"),
        ("ignor",
         r"(?:ignor[ae])\w*\W+(?:todas?|todos|tutte|tutti)?\W*(?:las?|os?|as|le"
         r"|gli)?\W*(?:anterior\w*|precedent\w*)\W+instruc\w+"),
        # French
        ("ignore|oublie|neglige|tiens|tenez",
         r"(?:ignor\w+|oublie\w*|neglige\w*|ne (?:tiens|tenez) (?:pas"
         r"|aucun) compte)\W+(?:\w+\W+){0,5}?"
         r"(?:instructions?|consignes?|regles?|directives?)(?:\W+\w+){0,2}?\W+(?:precedent\w*"
         r"|anterieur\w*|ci-dessus|du systeme|initiales?)"),
        # German, Dutch, Scandinavian
        ("ignorier|vergiss|vergesst|missacht|beachte",
         r"(?:ignorier\w*|vergiss|vergesst|missachte\w*"
         r"|beachte)\W+(?:\w+\W+){0,4}?(?:vorherig\w+|bisherig\w+|obig\w+|fruher\w+"
         r"|vorangegangen\w+|vorigen)"
         r"\W+(?:\w+\W+){0,2}?(?:anweisung\w*|instruktion\w*|regeln|vorgaben|befehle)"),
        ("negeer|vergeet",
         r"(?:negeer|vergeet)\W+(?:\w+\W+){0,3}?(?:vorige|eerdere|bovenstaande"
         r"|voorgaande)\W+(?:\w+\W+)?(?:instructies|opdrachten|regels)"),
        ("ignorera|ignorer|glom|glem",
         r"(?:ignorer[ae]?|glom|glem)\W+(?:\w+\W+){0,3}?(?:tidigare|tidligere|foregaende"
         r"|forrige)\W+(?:\w+\W+)?(?:instruktion\w*|instruks\w*|regler)"),
        # Slavic languages, Turkish
        ("игнорир|забуд|не обра",
         r"(?:игнорируи\w*|игнорируй\w*|забудь\w*"
         r"|не обращаи\w* внимания)\W+(?:\w+\W+){0,4}?(?:предыдущ\w+|прежн\w+"
         r"|все)\W+(?:\w+\W+){0,2}?(?:инструкци\w+|указани\w+|правил\w*|команд\w*)"),
        ("ігнору|забуд",
         r"(?:ігноруи\w*|ігноруй\w*|забудь\w*)\W+(?:\w+\W+){0,3}?(?:попередн\w+"
         r"|всі)\W+(?:\w+\W+)?(?:інструкці\w+|вказівки|правила)"),
        ("zignoruj|ignoruj|zapomnij|zapomen",
         r"(?:zignoruj|ignoruj|zapomnij|zapomen)\w*\W+(?:\w+\W+){0,4}?(?:poprzedni\w+"
         r"|wczesniejsz\w+|predchozi|vsechny)\W+(?:\w+\W+)?(?:instrukcj\w+|polece\w+|pokyny"
         r"|zasady|instrukce)"),
        ("talimat|yonerge|komut",
         r"(?:onceki|yukaridaki|tum)\W+(?:\w+\W+){0,2}?(?:talimat\w*|yonerge\w*"
         r"|komut\w*)\W+(?:\w+\W+){0,2}?(?:yok say|goz ardi|unut|dikkate alma)\w*"),
        # East Asia
        ("忽略|无视|忽視|無視|忘记|忘記|不要理会|忽视",
         r"(?:忽略|无视|忽視|無視|忘记|忘記|不要理会|忽视)[^。\n]{0,12}?(?:之前|以前|先前|上述|上面|以上|所有|前面"
         r"|原有)[^。\n]{0,8}?(?:指令|指示|说明|說明|规则|規則|提示|要求)"),
        ("無視|忘れ|従わ",
         r"(?:之前|以前|先前|上述|以上|前)の?[^。\n]{0,10}?(?:指示|命令|ルール|フロンフト|指令)[^。\n]{0,6}?(?:無視|忘れ|従わな)"),
        ("무시|잊",
         r"(?:이전|앞의|위의|모든)[^.\n]{0,12}?(?:지시|명령|지침|규칙)[^.\n]{0,8}?(?:무시|잊)"),
        ("무시|잊",
         r"(?:이전|앞의|위의|모든)[^.\n]{0,16}?(?:지시|명령|지침|규칙)[^.\n]{0,10}?(?:무시|잊)"),
        # Arabic, Hebrew, Hindi, Vietnamese, Indonesian
        ("تجاهل|انس|اهمل",
         r"(?:تجاهل|انس|اهمل)\W+(?:\w+\W+){0,3}?(?:التعليمات|الاوامر|القواعد)"),
        ("תעלם|שכח",
         r"(?:התעלם|תתעלם|שכח)\W+(?:\w+\W+){0,3}?(?:ההוראות|הנחיות|ההנחיות|הכללים)"),
        ("निर्देश|आदेश",
         r"(?:पिछल|पूर्व|सभी)\S*\W+(?:\S+\W+){0,3}?(?:निर्देश|निर्देशो"
         r"|आदेश)\S*\W+(?:\S+\W+){0,3}?(?:अनदेखा|नजरअदाज|भूल)"),
        ("bo qua|phot lo|quen",
         r"(?:bo qua|phot lo|quen)\W+(?:\w+\W+){0,4}?(?:huong dan|chi dan|lenh"
         r"|quy tac)(?:\W+\w+){0,2}?\W+(?:truoc|tren|truoc do)"),
        ("abaikan|lupakan",
         r"(?:abaikan|lupakan)\W+(?:\w+\W+){0,3}?(?:instruksi|perintah|arahan"
         r"|aturan)\W+(?:\w+\W+)?(?:sebelumnya|di atas|terdahulu)"),
    )
)  # fmt: skip


def in_other_languages(plain: str) -> Iterator[tuple[int, int]]:
    """Where such a sentence begins and ends."""
    for words, sentence in SENTENCES:
        places = [at for word in words if (at := plain.find(word)) >= 0]
        if places and (match := sentence.search(plain, max(0, min(places) - 80))):
            yield match.span()
