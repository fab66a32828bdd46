"""How models refuse, and how they are polite, in the eight languages and some more (L3). Pure.

Everything is looked for at the beginning of a sentence and in the first person: "I'm sorry, but I can't help" is a
refusal, "the user asked for a loan, the assistant said it can't help" is a record of one.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_ENGLISH_SORRY: Final = (
    r"(?:(?:i['’]?m|i am|we are|we['’]re)(?: \w+)? sorry|(?:so |very )?sorry|(?:my |our )?apologies|i regret"
    r"|i (?:\w+ )?apologi[sz]e|unfortunately|regrettably|i['’]?m afraid|i am afraid|i (?:understand|appreciate)"
    r"|thank you for|while i|as an? (?:ai|a\.i\.|language model|large language|artificial|assistant|responsible))\b"
)
_ENGLISH_CANNOT: Final = (
    r"\bi(?: \w+)?(?:['’]m| am)? ?(?:can ?not|can['’]?t|won['’]?t|will not|not able|unable|not permitted|not allowed"
    r"|not comfortable|not programmed|not designed|not going|don['’]?t (?:feel|have|think|want)|do not (?:feel|have)"
    r"|decline|refuse|must decline|must refuse|need to decline|have to decline|prefer not|['’]d rather not"
    r"|['’]d prefer not|would rather not)\b"
)
_ENGLISH_HELP: Final = (
    r"\W+(?:\w+\W+){0,4}?(?:help|assist|comply|provide|summari[sz]e|continue|discuss|create|fulfil|engage|support"
    r"|generate|process|participate|answer|respond|complete|share|comfortable|do (?:that|this)|talk about)"
)
_SUBJECT: Final = r"(?:requests?|prompts?|inputs?|messages?|quer(?:y|ies)|content|conversation|response|topic|task)"

_REFUSES: Final = (
    # English
    rf"{_ENGLISH_SORRY}.*(?:{_ENGLISH_CANNOT}|\b(?:beyond|outside|against|violat\w+|unable|not able|have to stop)\b"
    r"|n(?:['’]|o)t something)",
    rf"(?:(?:no|hm+|well|oh)\W+)?{_ENGLISH_CANNOT}{_ENGLISH_HELP}",
    r"we (?:cannot|can['’]t|are unable to) (?:process|fulfil\w*|complete|answer|provide|help|assist)\b",
    r"it (?:would|is) (?:be )?(?:not )?(?:inappropriate|appropriate|unethical|wrong) (?:for me )?to\b",
    r"i (?:must|have to|need to)(?: \w+)? (?:decline|refuse)\b",
    r"as an? (?:ai|a\.i\.|language model|large language model|artificial intelligence)\b",
    r"i(?:['’]m| am) (?:just|only|merely)?\s?an? (?:\w+[- ])?(?:ai|language model|text-based)\b"
    r"(?! (?:engineer|research|student|develop|teacher|consult|start-?up|company))",
    r"i(?:['’]m| am) (?:still learning how|not programmed|not designed|not able|unable) to\b",
    rf"(?:this|that|your|the) {_SUBJECT}.{{0,60}}\b(?:violat\w+|flagged|blocked|filtered|inappropriate|not allowed"
    r"|i can ?(?:no|['’])t|can(?:no|['’])t be (?:processed|fulfilled|completed|answered)|against (?:my|our|the))\b",
    r"(?:unable|not able|cannot|can['’]t) (?:to )?(?:comply|assist|help|process|fulfil)\b",
    r"(?:that|this|it)(?:['’]s| is) (?:beyond|outside|against) (?:my|our)\b",
    r"(?:(?:hm+|well|oh)\W+)?let['’]?s (?:talk|chat|discuss|change|switch|move on)\b",
    r"(?:request|access) (?:denied|refused|rejected)\b",
    r"(?:it (?:seems|looks|appears)(?: like| that)? )?there(?:['’]s| is| are)(?: currently)? no"
    r" (?:\w+ ){0,2}(?:conversation|content|text|dialogue|messages?|chat)\b"
    r"(?: (?:to|provided|here|yet|for me|that)|\W*$)",
    r"(?:i['’]?m|i am) (?:qwen|chatgpt|claude|deepseek|gemini|kimi|chatglm|llama|copilot|gemma|mistral|grok)\b",
    # Chinese
    r"(?:尊敬的用[户戶]|[你您]好)?\W*(?:非常|十分|很|真的?|[实實]在)?(?:感到)?(?:抱歉|[对對]不起|不好意思|[遗遺]憾)"
    r".*(?:[无無]法|不能|不可以|不便|[没沒][办辦]法|不[会會]|拒[绝絕]|不[适適]合|未能|不支持|敏感|[违違]|超出"
    r"|不了|不提供)",
    r"(?:很|非常)?(?:抱歉|[对對]不起)\W*$",
    r"(?:作[为為]|我(?:只)?是)(?:一?[个個名款位])?.{0,8}(?:AI|人工智[能慧]|[语語]言模型|[虚虛][拟擬]助)",
    r"我(?:(?:理解|明白|知道).{1,20}但(?:是)?我?|[还還]在[学學][习習].{0,8})(?:[无無]法|不能)",
    r"我(?:[暂暫][时時]|目前|[现現]在|恐怕|[还還])?(?:[无無]法|不能|[没沒]法|不可以|不[会會]|[没沒]有[办辦]法).{0,10}"
    r"(?:[帮幫]|[协協]助|提供|回答|[满滿]足|[继繼][续續]|完成|[处處]理|生成|[总總][结結]|[讨討][论論]|[执執]行"
    r"|[参參][与與])",
    r"(?:[这這][个個]|[该該]|[您你]的|此)(?:[问問][题題]|[请請]求|[内內]容|[话話][题題]|[输輸]入).{0,20}"
    r"(?:[无無]法|不能|敏感|[违違]|不[当當]|超出|不合[规規])",
    r".{0,20}(?:[换換][个個]|[换換]一[个個])[话話][题題]",
    r".{0,12}(?:[问問][题題]|[内內]容|[请請]求)[，,]?我(?:[暂暫][时時]|目前|[现現]在|[还還])?(?:[无無]法|不能|不便)",
    r"我是.{0,8}(?:通[义義]千[问問]|文心一言|豆包|混元|星火|智[谱譜]|Qwen|DeepSeek|Kimi|ChatGLM|ChatGPT)",
    r"根[据據].{0,8}(?:法律|法[规規]|政策|[规規]定).{0,12}(?:[无無]法|不能|不予)",
    r"(?:[内內]容|回答|回[复覆])已?被(?:[过過][滤濾]|屏蔽|[拦攔]截)",
    # Japanese
    r"(?:大変|誠に)?(?:申し訳|恐れ入り|すみません|すいません|ごめん|残念|あいにく|恐縮).*"
    r"(?:でき(?:ま|な|かね)|出来ま|かねま|ません|控え)",
    r"(?:大変|誠に)?申し訳(?:ありません|ございません)\W*$",
    r"(?:私|当方|こちら|その|この|ご|お|AI).{0,30}?(?:お?応え|お?答え|手伝い|対応|協力|提供|お役に立|支援"
    r"|お受け|要約|生成|会話)"
    r".{0,10}(?:控え|応じられ|でき(?:ません|ない|かね)|出来ません|かねます)",
    r"(?:私は)?.{0,6}(?:AI|人工知能|言語モデル)(?:アシスタント)?(?:として|ですので|なので|であり)",
    # Thai
    r"(?:ต้อง|ฉัน|ผม|ดิฉัน)?(?:ขออภัย|ขอโทษ|เสียใจ|น่าเสียดาย).*(?:ไม่สามารถ|ไม่ได้|ไม่อาจ|ไม่สะดวก|ขัดต่อ|นโยบาย)",
    r"(?:ฉัน|ผม|ดิฉัน|เรา|หนู)?(?:ไม่สามารถ|ไม่อาจ|ไม่สะดวก).{0,20}(?:ช่วย|ตอบ|ให้ข้อมูล|ดำเนินการ|ทำตาม|สรุป|สนทนา|พูดถึง)",
    r"(?:ในฐานะ|ฉันเป็น(?:เพียง)?|ผมเป็น(?:เพียง)?).{0,16}(?:AI|เอไอ|ปัญญาประดิษฐ์|โมเดลภาษา)",
    # Vietnamese
    r"(?:(?:tôi|mình|em|chúng tôi) )?(?:rất |thành thật |thật |vô cùng )?(?:xin lỗi|tiếc|lấy làm tiếc"
    r"|xin thứ lỗi)\b.*"
    r"(?:không (?:thể|được|hỗ trợ|có khả năng|phù hợp)|từ chối|chưa thể)",
    r"(?:tôi|mình|em|chúng tôi) (?:\w+ )?(?:không thể|không được phép|không có khả năng|từ chối|chưa thể)\b.{0,30}"
    r"(?:giúp|hỗ trợ|trả lời|thực hiện|cung cấp|đáp ứng|tóm tắt|tiếp tục|thảo luận)",
    r"(?:yêu cầu|nội dung|chủ đề) này\b.{0,40}(?:vi phạm|không phù hợp|không thể|nhạy cảm)",
    r"(?:là|với tư cách là|vì là|tôi (?:chỉ )?là) (?:một )?(?:mô hình|trợ lý|AI\b|trí tuệ)",
    # Spanish
    r"(?:lo (?:siento|lamento)|lamento|perdón|disculp[ae]|me disculpo|pido disculpas|mis disculpas|desafortunadamente"
    r"|lamentablemente|por desgracia|me temo)\b.*(?:\bno (?:poder\b|puedo|podemos|podré|me es|es posible|estoy|tengo"
    r"|soy|se puede"
    r"|está)|en contra|fuera de)",
    r"(?:yo )?no (?:puedo|podemos|podré|estoy \w+ (?:a|para)|me es posible|me siento)\b.{0,30}"
    r"(?:ayudar|asistir|cumplir|proporcionar|responder|continuar|resumir|realizar|generar|atender|ofrecer|participar"
    r"|facilitar|hablar|cómod)",
    r"(?:como|soy(?: solo| sólo)?) (?:una? )?(?:ia\b|modelo de|asistente|inteligencia artificial)",
    # Russian
    r"(?:извините|простите|прошу прощения|приношу|к сожалению|мне (?:очень )?жаль|сожалею|увы)\b.*"
    r"(?:\bне (?:могу|можем|смогу|в состоянии|способ|имею|буду|вправе|получится|готов)|не может быть|невозможно"
    r"|нельзя|вынужден|отказ|наруша)",
    r"(?:этот|данный|ваш) (?:запрос|вопрос)\b.{0,40}(?:наруша|не может быть|противореч)",
    r"(?:я )?(?:не (?:могу|смогу|буду|имею права|имею возможности|в состоянии)|вынужден\w* отказ"
    r"|отказываюсь)\b.{0,30}"
    r"(?:помо|ответ|выполн|предостав|продолж|обсужд|созда|обраб|участв|поддерж|говор)",
    r"(?:как(?: и любая)?|я(?: —| -)?(?: всего лишь| просто| только)?) "
    r"(?:ии\b|искусственн|(?:\w+ )?языков\w+ модел|ассистент|нейро|виртуальн)",
    r"(?:что-то в ваш|(?:я )?не люблю менять|давайте (?:поговорим|сменим|обсудим)|не хочу (?:говорить|обсуждать))",
    # Further ones: how such a sentence begins there
    r"(?:je suis (?:vraiment )?désolé|désolée?\b|je ne (?:peux|suis)|malheureusement|en tant qu['’](?:ia"
    r"|assistant|intell))",
    r"(?:es tut mir|leider (?:kann|darf|ist)|entschuldigung|ich kann (?:dir|ihnen|leider|dabei|diese|dazu)|als ki\b)",
    r"(?:desculpe|sinto muito|infelizmente|não posso|como (?:uma ia|um modelo)|mi dispiace|purtroppo"
    r"|non posso (?:aiut|ris))",
    r"(?:죄송|미안|저는 (?:도와|AI|인공지능)|maaf|saya (?:tidak (?:bisa|dapat)|mohon maaf)|üzgünüm|özür)",
    r"(?:przepraszam|niestety|het spijt|helaas|ik kan (?:je|u|dat)|jag kan (?:tyvärr|inte)|tyvärr|bohužel|عذر"
    r"|آسف|أعتذر|لا (?:أستطيع|يمكنني)|क्षमा|माफ़|मुझे खेद|samahani|paumanhin)",
)  # fmt: skip

_POLITE: Final = (
    # English
    r"(?:sure|of course|certainly|absolutely|okay|ok|got it|understood|noted|hello|hi|hey|great"
    r"|no problem(?: at all)?|as requested|my pleasure"
    r"|you['’]re welcome|thanks?(?: you)?(?: (?:so|very) much| a lot)?)\s*(?:[!.,:]|$|for\b|there\b)",
    r"(?:i['’]d|i would|i['’]m|i am|we are|we['’]re) (?:always )?(?:be )?(?:happy|glad|here|ready|delighted"
    r"|pleased) (?:to|for)\b",
    r"i (?:hope|can (?:help|assist)|will (?:do my best|remember|keep))\b|i['’]ll (?:remember|keep|do my best"
    r"|be happy)\b",
    r"(?:please )?(?:let me know|feel free|don['’]t hesitate)\b",
    r"please (?:provide|share|tell me|send|paste|ask|try|rephrase|consult|contact|reach out|specify|clarify)\b",
    r"if (?:you(?:['’]d| would| have| need| want| like| could| can|['’]re| are)?|there['’]?s|there is)\b.*"
    r"\b(?:let me|i['’]|i (?:can|would|will)|feel free|please|ask|happy|glad)",
    r"(?:is there anything|how (?:can|may|could) i|what (?:can|would|do) (?:i|you)|could you|can you|would you"
    r"|do you)\b",
    r"(?:here(?:['’]s| is| are)|below is) (?:the |your |an? )?(?:\w+ )?(?:memory|summary)\b",
    r"(?:have|wish you) an? (?:nice|great|good|wonderful)\b|good (?:morning|afternoon|evening|day)\b",
    r"(?:instead, (?:i|you|consider)|i (?:understand|appreciate) (?:that|your|you|how)\b)",
    # Chinese
    r"(?:好的|当然|當然|[没沒][问問][题題]|明白了?|收到|了解|[谢謝]{2}|[你您]好|不客[气氣]"
    r"|感[谢謝])\W*(?:[您你]|$|我[会會]|[为為]|.{0,6}(?:提[问問]|理解|支持))",
    r"(?:好的|当然|當然|[没沒][问問][题題]|明白了?|收到|了解|[谢謝]{2}|[你您]好|不客[气氣])\W*$",
    r".{0,12}(?:很[乐樂高][意兴興]|随[时時]|隨時|乐意|樂意|愿意|願意).{0,12}(?:[帮幫]|[为為]|服[务務]|告[诉訴])",
    r"(?:我(?:已[经經])?准[备備]好|[请請][问問]|[请請]告[诉訴]|[请請]提供|[请請][随隨][时時]|如果[您你]"
    r"|如[您你]|若[您你]|希望能?[对對]?[您你]|[您你](?:可以|想|需要|[还還]有)|有什[么麼]|[还還]有)",
    # Japanese
    r"(?:かしこまり|承知|了解|もちろん|わかりました|(?:ご質問|お問い合わせ|ご利用)?ありがとう|こんにちは"
    r"|はじめまして|どういたしまして|よろしく)",
    r".{0,30}(?:お気軽に|お聞きください|お申し付け|お知らせください|お聞かせください|教えてください"
    r"|いかがでしょうか|お手伝いしましょうか|お手伝いできますか)",
    r".{0,20}(?:会話|内容|テキスト|文章|本文).{0,10}(?:提供|送|貼り|共有|入力).{0,6}(?:ください|下さい)",
    # Thai
    r"(?:ได้เลย|แน่นอน|รับทราบ|เข้าใจแล้ว|ขอบคุณ|สวัสดี|ยินดี|โอเค|ตกลง)",
    r"(?:มีอะไรให้|ต้องการให้|คุณต้องการ|คุณมี|คุณอยาก|หาก|ถ้าคุณ|กรุณา|โปรด|ช่วยบอก|บอกฉัน).{0,80}",
    # Vietnamese
    r"(?:vâng|dạ|được rồi|chắc chắn rồi|tất nhiên|đã hiểu|cảm ơn|xin chào|chào bạn|không có gì|ok)\b",
    r"(?:tôi|mình|em) (?:rất )?(?:sẵn (?:lòng|sàng)|vui lòng|luôn)\b|(?:nếu bạn|bạn (?:có|cần|muốn|hãy)|hãy cho"
    r"|vui lòng|chúc (?:bạn|anh|chị))\b",
    # Spanish
    r"(?:claro|por supuesto|entendido|de acuerdo|vale|gracias|hola|de nada|con gusto|encantad[oa]"
    r"|perfecto)\b\s*(?:[!.,:]|$|por\b|que\b)",
    r"(?:quedo a (?:tu|su) disposición|estoy (?:aquí|listo|encantad)|estaré encantad|si (?:necesitas?|tienes?"
    r"|desea|quiere|me)|por favor|dime|avísame|házmelo|no dudes"
    r"|espero que|¿(?:en qué|cómo|qué|puedes?|podrías?|quieres?|hay|te|le|necesit))",
    # Russian
    r"(?:конечно|хорошо|понял[аи]?|понятно|спасибо|здравствуйте|привет|пожалуйста|ладно|принято|рад[аы]? )(?:\W|$)",
    r"(?:всегда рад|хорошего|если (?:вам|вы|у вас|тебе|хотите|нужн)|чем (?:я )?могу|дайте знать|обращайтесь"
    r"|буду рад|готов[аы]? помочь|уточните"
    r"|сообщите|напишите|надеюсь|хотите|могу (?:ли )?(?:я )?(?:помочь|чем))",
)  # fmt: skip

REFUSES: Final = re.compile("|".join(_REFUSES), re.IGNORECASE)
POLITE: Final = re.compile("|".join(_POLITE), re.IGNORECASE)

_LOOKED_AT: Final = 300
"""Characters of a sentence in which its manner shows."""

_QUOTES: Final = "\"'“”„«»「」『』‘’"


def refuses(sentence: str) -> bool:
    """Whether somebody refuses to do what was asked, in this very sentence."""
    return REFUSES.match(_bare(sentence)) is not None


def is_polite(sentence: str) -> bool:
    """Whether a sentence greets, thanks, offers help or asks what is wanted, and says nothing else worth keeping."""
    return POLITE.match(_bare(sentence)) is not None


def _bare(sentence: str) -> str:
    """From its first letter on, accents in one spelling. A quotation with words behind it keeps its mark: it tells what
    somebody said."""
    text = re.sub(r"\A[^\w¿]+", _quote_mark, unicodedata.normalize("NFC", sentence[:_LOOKED_AT].strip()))
    return text.lstrip(_QUOTES) if text[-1:] in _QUOTES else text


def _quote_mark(before: re.Match[str]) -> str:
    return before[0][-1] if before[0][-1] in _QUOTES else ""
