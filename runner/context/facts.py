"""What people state about themselves, and what says nothing, in the eight languages (L4). Pure.

Nobody asks a digest to keep "my name is Ann": it holds no number and no code, and yet it is what is asked for later.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_ENGLISH: Final = (
    r"\bmy (?:\w+ ){0,3}?(?:is|are|was|['’]s called|turns?|lives?|works?|speaks?|likes?|loves?|hates?)\b"
    r"|\b(?:my|our) (?:name|age|birthday|wife|husband|son|daughter|kids?|children|mother|father|mum|mom|dad"
    r"|brother|sister"
    r"|partner|girlfriend|boyfriend|dog|cat|job|boss|address|hometown|hobby|hobbies|allergy|allergies)['’]?s?\b"
    r"|\bcall me\b|\bi(?:['’]m| am) (?!sorry|sure|not sure|trying|asking|wondering|here|back|done|just|afraid"
    r"|going to)\w+"
    r"|\bi (?:\w+ )?(?:live|work|study|like|love|hate|dislike|prefer|enjoy|speak|come from|was born|grew up"
    r"|moved|own|play"
    r"|suffer|turn|eat|drink|teach|never|always)\b|\bi (?:have|['’]ve got) (?:an?|no|two|three|four|five|\d+)\b"
    r"|\bi (?:can(?:no|['’])?t|don['’]t|do not) (?:eat|drink|like|have|speak|drive|smoke)\b|\ballergic\b"
)
_CHINESE: Final = (
    r"我(?:的)?(?:全?名|名字|姓名|生日|年[龄齡]|家|老家|[职職][业業]|工作|[爱愛]好|妻子|太太|老婆|丈夫|先生"
    r"|老公|孩子|[儿兒]子|女[儿兒]|[妈媽]|爸"
    r"|父|母|哥|姐|弟|妹|[猫貓]|狗|[电電][话話]|手[机機]|[邮郵]箱|地址|公司|女朋友|男朋友)"
    r"|我(?:叫|姓|是|今年|住|[来來]自|(?:最|很|也|不)?喜[欢歡]|(?:最|很|不)?[爱愛]|[讨討][厌厭]"
    r"|[对對].{1,12}(?:[过過]敏|感[兴興]趣)|在.{1,16}(?:工作|上班|上[学學]|住)"
    r"|有.{0,6}(?:[过過]敏|[个個只条條名位])|[养養]|出生|不吃|不喝|吃素|[会會][说說]|[结結]婚|\d|属)|叫我|[过過]敏"
)
_JAPANESE: Final = (
    r"(?:私|僕|俺|わたし|ぼく|うち|自分)(?:の|は|も|には|、)|(?:名前|年齢|誕生日|仕事|趣味|職業|出身|住所"
    r"|電話番号)(?:は|が)"
    r"|と(?:申し|いい|言い|呼んで)|\d+ ?[歳才]|に住んで|住まい|アレルギー|[がを](?:大?好き|嫌い|苦手|飼って)"
    r"|勤めて|働いて|生まれ|食べられ"
)
_THAI: Final = (
    r"(?:ฉัน|ผม|ดิฉัน|หนู|เรา|กระผม)(?:ชื่อ|อายุ|อยู่|อาศัย|แพ้|ชอบ|ไม่ชอบ|รัก|เกลียด|ทำงาน|เป็น|เกิด|มี|มาจาก|เรียน"
    r"|พูด|กิน|ไม่กิน|ไม่ทาน|เลี้ยง)"
    r"|(?:ชื่อ|อายุ|บ้าน|วันเกิด|งาน|อาชีพ|แม่|พ่อ|ลูก|ภรรยา|สามี|แมว|หมา|สุนัข|เบอร์|อีเมล|ที่อยู่"
    r"|งานอดิเรก)(?:ของ)?(?:ฉัน|ผม|ดิฉัน|หนู|เรา)"
    r"|เรียก(?:ฉัน|ผม|ดิฉัน|หนู|เรา)|^ชื่อ|แพ้"
)
_VIETNAMESE: Final = (
    r"\b(?:tôi|mình|em|tớ|anh|chị|cháu)(?: năm nay| hiện| cũng| rất| không)? (?:tên|là|sống|ở|thích|yêu|ghét|bị"
    r"|dị ứng|làm"
    r"|sinh|đến từ|có|học|nói|ăn|uống|nuôi|quê|\d+ tuổi)\b"
    r"|\b(?:tên|tuổi|sinh nhật|nhà|vợ|chồng|con(?: trai| gái)?|mẹ|bố|ba|công việc|nghề(?: nghiệp)?|quê|sở thích"
    r"|số điện thoại"
    r"|địa chỉ|chó|mèo)(?: của)? (?:tôi|mình|em|tớ)\b|\bgọi (?:tôi|mình|em) là\b|\bdị ứng\b"
)
_SPANISH: Final = (
    r"\bme (?:llamo|gustan?|encantan?|dedico|mudé|apellido)\b|\bmis? (?:\w+ ){1,3}?(?:es|son|está|se llaman?"
    r"|vive|trabaja|cumple)\b"
    r"|\b(?:soy|vivo|trabajo|odio|prefiero|nací|estudio|hablo|cumplo|adoro|detesto)\b|\bllámame\b|\balérgic[oa]\b"
    r"|\btengo (?!que\b|una? (?:pregunta|duda|problema)\b)|\bno (?:como|bebo|puedo comer)\b|\bestoy (?:casad"
    r"|jubilad|embarazad)"
)
_RUSSIAN: Final = (
    r"\bменя зовут\b|\bзови(?:те)? меня\b|\bмо(?:й|я|ё|е|и|ю|его|ей|их|ему|им)\b|\bмне \d+"
    r"|\bмне \w+(?: \w+)? (?:лет|год)"
    r"|\bмне (?:очень |не )?нрав|\bу меня (?!вопрос|проблем)\w+|\bаллерги"
    r"|\bя (?:очень |не )?(?:живу|работаю|люблю|обожаю|ненавижу|учусь|родил|из\b|предпочитаю|ем\b|пью|переехал"
    r"|говорю|"
    r"вегетариан|женат|замужем|играю|преподаю|врач|учител|инженер|студент)"
)
_STATES: Final = re.compile(
    "|".join((_ENGLISH, _CHINESE, _JAPANESE, _THAI, _VIETNAMESE, _SPANISH, _RUSSIAN)), re.IGNORECASE
)

_NOTHING: Final = re.compile(
    r"(?:(?:ok(?:ay|ey|i)?|k|yes|yep|yeah|yup|no|nope|sure|fine|great|good|nice|cool|perfect|thanks?|thank you"
    r"|thx|ty|please"
    r"|hi|hello|hey|bye|goodbye|got it|understood|i see|noted|alright|all right|right|exactly|so much|very much"
    r"|a lot|lol"
    r"|haha+|hmm+|you['’]re welcome|no problem|of course|certainly|go on|continue"
    r"|好的?|嗯+|[谢謝]{1,2}[你您]?|多[谢謝]|明白了?|知道了|收到|了解|[没沒][问問][题題]|不客[气氣]|可以|是的?"
    r"|[对對]的?|不是|行|哈+|[你您]好|再[见見]|[继繼][续續]"
    r"|はい|いいえ|うん|ええ|ありがとう(?:ございます|ございました)?|どうも|了解(?:です|しました)?|わかりました"
    r"|分かりました|なるほど|オーケー|こんにちは|承知しました|お願いします"
    r"|ครับ|ค่ะ|คะ|ขอบคุณ(?:ครับ|ค่ะ|มาก|มากครับ|มากค่ะ)?|โอเค|ตกลง|ได้|ใช่|ไม่|สวัสดี(?:ครับ|ค่ะ)?|เข้าใจแล้ว|รับทราบ"
    r"|vâng|dạ|ừ|được(?: rồi)?|cảm ơn(?: bạn)?(?: nhiều)?|cám ơn|hiểu rồi|không|có|đúng(?: rồi)?|xin chào"
    r"|chào(?: bạn)?|tốt"
    r"|s[ií]|vale|gracias|muchas gracias|de acuerdo|entendido|claro|perfecto|bien|muy bien|genial|hola|adiós|de nada"
    r"|да|нет|ок|окей|хорошо|ладно|спасибо|большое|понятно|понял[аи]?|ясно|привет|здравствуйте|пока|отлично"
    r"|конечно|пожалуйста)"
    r"[\s\W]*){1,4}",
    re.IGNORECASE,
)
_LONGEST_NOTHING: Final = 60
"""Characters of a sentence that may say nothing."""


def states_fact(sentence: str) -> bool:
    """Whether somebody tells something lasting of themselves: a name, an age, a home, a liking, an allergy, a job."""
    return _STATES.search(unicodedata.normalize("NFC", sentence)) is not None


def says_nothing(sentence: str) -> bool:
    """Whether a sentence is only an "ok", a greeting, thanks or signs."""
    bare = unicodedata.normalize("NFC", sentence).strip()
    if not any(map(str.isalnum, bare)):
        return True
    return len(bare) <= _LONGEST_NOTHING and _NOTHING.fullmatch(bare.lstrip("¡¿ \t\"'“”*-")) is not None
