"""The sentences of `Notice` by id and locale. A setting is called what the form calls it in that locale."""

# ruff: noqa: E501 -- wide scripts count double, and a sentence in one piece is easier to compare with its translations

from collections.abc import Mapping

from config.locales import Locale
from config.notices.consent_texts import CONSENT_TEXTS

_EN, _HANS, _HANT, _JA = Locale.EN_US, Locale.ZH_HANS, Locale.ZH_HANT, Locale.JA_JP
_TH, _VI, _ES, _RU = Locale.TH_TH, Locale.VI_VN, Locale.ES_ES, Locale.RU_RU

TEXTS: Mapping[str, Mapping[Locale, str]] = {
    **CONSENT_TEXTS,
    "no_model": {
        _EN: "No usable model is set up here. Please choose a model in the “AI” tab of the pipeline.",
        _HANS: "这里还没有可用的模型。请在流水线的“AI 能力”页中选择一个模型。",
        _HANT: "這裡還沒有可用的模型。請在流水線的「AI 能力」頁中選擇一個模型。",
        _JA: "利用できるモデルが設定されていません。パイプラインの「AI機能」タブでモデルを選んでください。",
        _TH: "ยังไม่ได้ตั้งค่าโมเดลที่ใช้งานได้ กรุณาเลือกโมเดลในแท็บ “AI” ของไปป์ไลน์",
        _VI: "Ở đây chưa có mô hình nào dùng được. Vui lòng chọn một mô hình trong thẻ “AI” của quy trình.",
        _ES: "Aquí no hay ningún modelo disponible. Elige un modelo en la pestaña «IA» del flujo.",
        _RU: "Здесь не настроена ни одна рабочая модель. Выберите модель на вкладке «ИИ» конвейера.",
    },
    "all_models_failed": {
        _EN: "No model could answer: {reason}. Please try again shortly; if it happens again, check the model settings.",
        _HANS: "所有模型都没能回答：{reason}。请稍后再试；如果仍然这样，请检查模型设置。",
        _HANT: "所有模型都無法回答：{reason}。請稍後再試；如果仍然這樣，請檢查模型設定。",
        _JA: "どのモデルからも回答を得られませんでした：{reason}。少し待ってからもう一度お試しください。"
        "繰り返す場合は、モデルの設定を確認してください。",
        _TH: "ไม่มีโมเดลใดตอบได้: {reason} กรุณาลองใหม่อีกสักครู่ หากยังเป็นเช่นเดิม ให้ตรวจสอบการตั้งค่าโมเดล",
        _VI: "Không mô hình nào trả lời được: {reason}. Vui lòng thử lại sau giây lát; "
        "nếu vẫn gặp lỗi, hãy kiểm tra cài đặt mô hình.",
        _ES: "Ningún modelo ha podido responder: {reason}. Inténtalo de nuevo en un momento; "
        "si se repite, revisa la configuración de los modelos.",
        _RU: "Ни одна модель не смогла ответить: {reason}. Попробуйте ещё раз чуть позже; "
        "если ошибка повторится, проверьте настройки моделей.",
    },
    "prompt_too_large": {
        _EN: "The prompt alone is too large for the model. Please shorten “Prompt”, or raise “Context window (tokens)” "
        "if the model takes more.",
        _HANS: "仅提示词本身就超出了模型的容量。请缩短“提示词”；如果模型支持更长的上下文，请调大“上下文窗口（token）”。",
        _HANT: "光是提示詞本身就超出了模型的容量。請縮短「提示詞」；如果模型支援更長的上下文，請調大「上下文視窗（token）」。",
        _JA: "プロンプトだけでモデルの上限を超えています。「プロンプト」を短くするか、"
        "モデルがさらに受け付けられる場合は「コンテキストウィンドウ（トークン）」を大きくしてください。",
        _TH: "เฉพาะพรอมต์อย่างเดียวก็ใหญ่เกินกว่าที่โมเดลรับได้ กรุณาย่อ “พรอมต์” ให้สั้นลง "
        "หรือเพิ่ม “หน้าต่างบริบท (โทเคน)” หากโมเดลรับได้มากกว่านี้",
        _VI: "Chỉ riêng lời nhắc đã quá lớn đối với mô hình. Hãy rút gọn “Lời nhắc”, "
        "hoặc tăng “Cửa sổ ngữ cảnh (token)” nếu mô hình nhận được nhiều hơn.",
        _ES: "Las instrucciones por sí solas son demasiado largas para el modelo. Acorta «Instrucciones (prompt)» "
        "o aumenta «Ventana de contexto (tokens)» si el modelo admite más.",
        _RU: "Один только промпт слишком велик для модели. Сократите «Промпт» или увеличьте "
        "«Окно контекста (токены)», если модель принимает больше.",
    },
    "message_too_large": {
        _EN: "Your message is too long for the model. Please send a shorter one or split it; "
        "the owner can raise “Context window (tokens)” if the model takes more.",
        _HANS: "你的消息太长，模型装不下。请缩短或分几条发送；如果模型支持更长的上下文，管理员可以调大“上下文窗口（token）”。",
        _HANT: "你的訊息太長，模型裝不下。請縮短或分幾則傳送；如果模型支援更長的上下文，管理員可以調大「上下文視窗（token）」。",
        _JA: "メッセージが長すぎて、モデルが受け付けられません。短くするか分けて送ってください。"
        "モデルがさらに受け付けられる場合は、管理者が「コンテキストウィンドウ（トークン）」を大きくできます。",
        _TH: "ข้อความของคุณยาวเกินกว่าที่โมเดลรับได้ กรุณาส่งให้สั้นลงหรือแบ่งส่ง "
        "ผู้ดูแลสามารถเพิ่ม “หน้าต่างบริบท (โทเคน)” ได้หากโมเดลรับได้มากกว่านี้",
        _VI: "Tin nhắn của bạn quá dài đối với mô hình. Vui lòng gửi ngắn hơn hoặc chia nhỏ; "
        "quản trị viên có thể tăng “Cửa sổ ngữ cảnh (token)” nếu mô hình nhận được nhiều hơn.",
        _ES: "Tu mensaje es demasiado largo para el modelo. Envía uno más corto o divídelo; "
        "quien administra el bot puede aumentar «Ventana de contexto (tokens)» si el modelo admite más.",
        _RU: "Ваше сообщение слишком длинное для модели. Сократите его или разделите на части; "
        "владелец бота может увеличить «Окно контекста (токены)», если модель принимает больше.",
    },
    "pictures_too_large": {
        _EN: "The pictures in your message take more than the model can read at once. Please send fewer of them; "
        "the owner can raise “Context window (tokens)” if the model takes more.",
        _HANS: "你消息里的图片超出了模型一次能读的量。请少发几张；如果模型支持更长的上下文，管理员可以调大“上下文窗口（token）”。",
        _HANT: "你訊息裡的圖片超出了模型一次能讀的量。請少傳幾張；如果模型支援更長的上下文，管理員可以調大「上下文視窗（token）」。",
        _JA: "メッセージの画像が、モデルが一度に読める量を超えています。枚数を減らして送ってください。"
        "モデルがさらに受け付けられる場合は、管理者が「コンテキストウィンドウ（トークン）」を大きくできます。",
        _TH: "รูปภาพในข้อความของคุณมากเกินกว่าที่โมเดลอ่านได้ในครั้งเดียว กรุณาส่งให้น้อยลง "
        "ผู้ดูแลสามารถเพิ่ม “หน้าต่างบริบท (โทเคน)” ได้หากโมเดลรับได้มากกว่านี้",
        _VI: "Hình ảnh trong tin nhắn của bạn vượt quá lượng mô hình đọc được trong một lần. Vui lòng gửi ít hình hơn; "
        "quản trị viên có thể tăng “Cửa sổ ngữ cảnh (token)” nếu mô hình nhận được nhiều hơn.",
        _ES: "Las imágenes de tu mensaje ocupan más de lo que el modelo puede leer de una vez. Envía menos; "
        "quien administra el bot puede aumentar «Ventana de contexto (tokens)» si el modelo admite más.",
        _RU: "Изображений в вашем сообщении больше, чем модель может прочитать за раз. Пришлите меньше; "
        "владелец бота может увеличить «Окно контекста (токены)», если модель принимает больше.",
    },
    "tools_too_large": {
        _EN: "The descriptions of the tools alone are too large for the model. Please enable fewer tools, "
        "or raise “Context window (tokens)” if the model takes more.",
        _HANS: "仅工具说明就超出了模型的容量。请少启用一些工具；如果模型支持更长的上下文，请调大“上下文窗口（token）”。",
        _HANT: "光是工具說明就超出了模型的容量。請少啟用一些工具；如果模型支援更長的上下文，請調大「上下文視窗（token）」。",
        _JA: "ツールの説明だけでモデルの上限を超えています。有効にするツールを減らすか、"
        "モデルがさらに受け付けられる場合は「コンテキストウィンドウ（トークン）」を大きくしてください。",
        _TH: "เฉพาะคำอธิบายของเครื่องมือก็ใหญ่เกินกว่าที่โมเดลรับได้ กรุณาเปิดใช้เครื่องมือให้น้อยลง "
        "หรือเพิ่ม “หน้าต่างบริบท (โทเคน)” หากโมเดลรับได้มากกว่านี้",
        _VI: "Chỉ riêng phần mô tả công cụ đã quá lớn đối với mô hình. Hãy bật ít công cụ hơn, "
        "hoặc tăng “Cửa sổ ngữ cảnh (token)” nếu mô hình nhận được nhiều hơn.",
        _ES: "Las descripciones de las herramientas por sí solas son demasiado largas para el modelo. "
        "Activa menos herramientas o aumenta «Ventana de contexto (tokens)» si el modelo admite más.",
        _RU: "Одни только описания инструментов слишком велики для модели. Включите меньше инструментов "
        "или увеличьте «Окно контекста (токены)», если модель принимает больше.",
    },
    "knowledge_too_large": {
        _EN: "What was found in the knowledge bases is too large for the model. Please lower “Results per knowledge base”, "
        "or raise “Context window (tokens)” if the model takes more.",
        _HANS: "从知识库检索到的内容超出了模型的容量。请调小“每个知识库的检索条数”；"
        "如果模型支持更长的上下文，请调大“上下文窗口（token）”。",
        _HANT: "從知識庫檢索到的內容超出了模型的容量。請調小「每個知識庫的檢索筆數」；"
        "如果模型支援更長的上下文，請調大「上下文視窗（token）」。",
        _JA: "ナレッジベースから取得した内容がモデルの上限を超えています。「ナレッジベースごとの取得件数」を減らすか、"
        "モデルがさらに受け付けられる場合は「コンテキストウィンドウ（トークン）」を大きくしてください。",
        _TH: "เนื้อหาที่ค้นได้จากฐานความรู้ใหญ่เกินกว่าที่โมเดลรับได้ กรุณาลด “จำนวนผลลัพธ์ต่อฐานความรู้” "
        "หรือเพิ่ม “หน้าต่างบริบท (โทเคน)” หากโมเดลรับได้มากกว่านี้",
        _VI: "Nội dung tìm được trong cơ sở tri thức quá lớn đối với mô hình. Hãy giảm “Số kết quả mỗi cơ sở tri thức”, "
        "hoặc tăng “Cửa sổ ngữ cảnh (token)” nếu mô hình nhận được nhiều hơn.",
        _ES: "Lo encontrado en las bases de conocimiento es demasiado largo para el modelo. "
        "Reduce «Resultados por base de conocimiento» o aumenta «Ventana de contexto (tokens)» si el modelo admite más.",
        _RU: "Найденное в базах знаний слишком велико для модели. Уменьшите «Результатов из каждой базы знаний» "
        "или увеличьте «Окно контекста (токены)», если модель принимает больше.",
    },
    "time_limit": {
        _EN: "There was not enough time to answer. Please try again or ask for less at once; "
        "the owner can raise “Time limit (seconds)”.",
        _HANS: "时间不够，没能回答完。请重试，或把问题拆小一些；管理员可以调大“时间限制（秒）”。",
        _HANT: "時間不夠，沒能回答完。請重試，或把問題拆小一些；管理員可以調大「時間限制（秒）」。",
        _JA: "時間切れで回答できませんでした。もう一度試すか、一度に頼む内容を減らしてください。"
        "管理者は「制限時間（秒）」を延ばせます。",
        _TH: "หมดเวลาก่อนที่จะตอบได้ กรุณาลองใหม่หรือขอทีละน้อยลง ผู้ดูแลสามารถเพิ่ม “เวลาสูงสุด (วินาที)” ได้",
        _VI: "Không đủ thời gian để trả lời. Vui lòng thử lại hoặc yêu cầu ít hơn mỗi lần; "
        "quản trị viên có thể tăng “Giới hạn thời gian (giây)”.",
        _ES: "No ha dado tiempo a responder. Inténtalo de nuevo o pide menos cosas a la vez; "
        "quien administra el bot puede aumentar «Límite de tiempo (segundos)».",
        _RU: "На ответ не хватило времени. Попробуйте ещё раз или спросите о чём-то меньшем; "
        "владелец бота может увеличить «Лимит времени (секунды)».",
    },
    "time_limit_note": {
        _EN: "[Time ran out; the answer ends here.]",
        _HANS: "【时间已到，回答到此为止。】",
        _HANT: "【時間已到，回答到此為止。】",
        _JA: "［時間切れのため、回答はここまでです。］",
        _TH: "[หมดเวลา คำตอบจบเพียงเท่านี้]",
        _VI: "[Đã hết thời gian; câu trả lời dừng ở đây.]",
        _ES: "[Se acabó el tiempo; la respuesta termina aquí.]",
        _RU: "[Время вышло, ответ обрывается здесь.]",
    },
    "length_limit_note": {
        _EN: "[The model reached its length limit; the answer is cut off here.]",
        _HANS: "【模型达到输出长度上限，回答在此被截断。】",
        _HANT: "【模型達到輸出長度上限，回答在此被截斷。】",
        _JA: "［モデルの出力上限に達したため、回答はここで途切れています。］",
        _TH: "[โมเดลถึงขีดจำกัดความยาว คำตอบจึงถูกตัดที่ตรงนี้]",
        _VI: "[Mô hình đã đạt giới hạn độ dài; câu trả lời bị cắt ở đây.]",
        _ES: "[El modelo ha llegado a su límite de longitud; la respuesta queda cortada aquí.]",
        _RU: "[Модель достигла предела длины, ответ здесь обрезан.]",
    },
    "stopped_note": {
        _EN: "[Stopped on request.]",
        _HANS: "【已按要求停止。】",
        _HANT: "【已依要求停止。】",
        _JA: "［ご要望により停止しました。］",
        _TH: "[หยุดตามคำขอแล้ว]",
        _VI: "[Đã dừng theo yêu cầu.]",
        _ES: "[Detenido a petición.]",
        _RU: "[Остановлено по запросу.]",
    },
    "transport_limit_note": {
        _EN: "[The answer is too long to be sent whole; the rest is left out.]",
        _HANS: "【回答太长，无法完整发送，其余部分已省略。】",
        _HANT: "【回答太長，無法完整傳送，其餘部分已省略。】",
        _JA: "［回答が長すぎて全体を送信できないため、残りを省略しました。］",
        _TH: "[คำตอบยาวเกินกว่าจะส่งได้ทั้งหมด ส่วนที่เหลือถูกตัดออก]",
        _VI: "[Câu trả lời quá dài để gửi trọn vẹn; phần còn lại đã được lược bỏ.]",
        _ES: "[La respuesta es demasiado larga para enviarla entera; se ha omitido el resto.]",
        _RU: "[Ответ слишком длинный, чтобы отправить его целиком; остальное опущено.]",
    },
    "empty_answer": {
        _EN: "The model returned an empty answer. Please try again or rephrase your message.",
        _HANS: "模型返回了空白的回答。请重试，或换一种说法。",
        _HANT: "模型回傳了空白的回答。請重試，或換一種說法。",
        _JA: "モデルの回答が空でした。もう一度試すか、言い方を変えてみてください。",
        _TH: "โมเดลส่งคำตอบว่างกลับมา กรุณาลองใหม่หรือเรียบเรียงข้อความใหม่",
        _VI: "Mô hình trả về câu trả lời trống. Vui lòng thử lại hoặc diễn đạt theo cách khác.",
        _ES: "El modelo ha devuelto una respuesta vacía. Inténtalo de nuevo o dilo de otra manera.",
        _RU: "Модель вернула пустой ответ. Попробуйте ещё раз или сформулируйте иначе.",
    },
    "tool_rounds_note": {
        _EN: "[The limit on tool use was reached (rounds: {rounds}); the model gave no final answer.]",
        _HANS: "【已达到工具调用上限（{rounds} 轮），模型没有给出最终回答。】",
        _HANT: "【已達到工具呼叫上限（{rounds} 輪），模型沒有給出最終回答。】",
        _JA: "［ツール使用の上限（{rounds}回）に達しましたが、モデルは最終的な回答を返しませんでした。］",
        _TH: "[ใช้เครื่องมือครบจำนวนที่กำหนดแล้ว ({rounds} รอบ) แต่โมเดลไม่ได้ให้คำตอบสุดท้าย]",
        _VI: "[Đã đạt giới hạn dùng công cụ ({rounds} vòng); mô hình không đưa ra câu trả lời cuối cùng.]",
        _ES: "[Se ha alcanzado el límite de uso de herramientas (rondas: {rounds}); "
        "el modelo no ha dado una respuesta final.]",
        _RU: "[Достигнут предел использования инструментов (раундов: {rounds}); окончательного ответа модель не дала.]",
    },
    "no_time_note": {
        _EN: "[Time was nearly up; the model gave no final answer.]",
        _HANS: "【时间即将用完，模型没有给出最终回答。】",
        _HANT: "【時間即將用完，模型沒有給出最終回答。】",
        _JA: "［時間切れが近づきましたが、モデルは最終的な回答を返しませんでした。］",
        _TH: "[ใกล้หมดเวลาแล้ว แต่โมเดลไม่ได้ให้คำตอบสุดท้าย]",
        _VI: "[Sắp hết thời gian; mô hình không đưa ra câu trả lời cuối cùng.]",
        _ES: "[El tiempo estaba a punto de acabarse; el modelo no ha dado una respuesta final.]",
        _RU: "[Время почти вышло; окончательного ответа модель не дала.]",
    },
    "no_answer_note": {
        _EN: "[The model gave no final answer.]",
        _HANS: "【模型没有给出最终回答。】",
        _HANT: "【模型沒有給出最終回答。】",
        _JA: "［モデルは最終的な回答を返しませんでした。］",
        _TH: "[โมเดลไม่ได้ให้คำตอบสุดท้าย]",
        _VI: "[Mô hình không đưa ra câu trả lời cuối cùng.]",
        _ES: "[El modelo no ha dado una respuesta final.]",
        _RU: "[Окончательного ответа модель не дала.]",
    },
    "filtered": {
        _EN: "The content filter of the model's provider held the answer back. Please rephrase your message.",
        _HANS: "模型服务商的内容过滤拦下了回答。请换一种说法。",
        _HANT: "模型服務商的內容過濾攔下了回答。請換一種說法。",
        _JA: "モデル提供元のコンテンツフィルターが回答を止めました。言い方を変えてみてください。",
        _TH: "ตัวกรองเนื้อหาของผู้ให้บริการโมเดลระงับคำตอบไว้ กรุณาเรียบเรียงข้อความใหม่",
        _VI: "Bộ lọc nội dung của nhà cung cấp mô hình đã chặn câu trả lời. Vui lòng diễn đạt theo cách khác.",
        _ES: "El filtro de contenido del proveedor del modelo ha retenido la respuesta. Dilo de otra manera.",
        _RU: "Фильтр содержимого у поставщика модели не пропустил ответ. Сформулируйте сообщение иначе.",
    },
    "filtered_note": {
        _EN: "[The content filter of the model's provider ended the answer here.]",
        _HANS: "【模型服务商的内容过滤在此中止了回答。】",
        _HANT: "【模型服務商的內容過濾在此中止了回答。】",
        _JA: "［モデル提供元のコンテンツフィルターにより、回答はここで打ち切られました。］",
        _TH: "[ตัวกรองเนื้อหาของผู้ให้บริการโมเดลตัดคำตอบที่ตรงนี้]",
        _VI: "[Bộ lọc nội dung của nhà cung cấp mô hình đã ngắt câu trả lời tại đây.]",
        _ES: "[El filtro de contenido del proveedor del modelo ha cortado la respuesta aquí.]",
        _RU: "[Фильтр содержимого у поставщика модели оборвал ответ здесь.]",
    },
    "summarising": {
        _EN: "Summarising the earlier conversation, one moment…",
        _HANS: "正在整理之前的对话，请稍候……",
        _HANT: "正在整理先前的對話，請稍候……",
        _JA: "これまでの会話を要約しています。少々お待ちください…",
        _TH: "กำลังสรุปบทสนทนาก่อนหน้า กรุณารอสักครู่…",
        _VI: "Đang tóm tắt phần trò chuyện trước, vui lòng chờ một chút…",
        _ES: "Resumiendo la conversación anterior, un momento…",
        _RU: "Подвожу итог предыдущей беседы, одну минуту…",
    },
    "tool_running": {
        _EN: "Still working: {tool} is running…",
        _HANS: "仍在处理：{tool} 正在运行……",
        _HANT: "仍在處理：{tool} 正在執行……",
        _JA: "処理中です：{tool} を実行しています…",
        _TH: "ยังทำงานอยู่: กำลังเรียกใช้ {tool}…",
        _VI: "Vẫn đang xử lý: {tool} đang chạy…",
        _ES: "Sigo en ello: {tool} se está ejecutando…",
        _RU: "Ещё работаю: выполняется {tool}…",
    },
    "images_left_out_note": {
        _EN: "[The model does not take images, so they were left out.]",
        _HANS: "【该模型不支持图片，图片已被忽略。】",
        _HANT: "【該模型不支援圖片，圖片已被忽略。】",
        _JA: "［このモデルは画像に対応していないため、画像を除いて回答しました。］",
        _TH: "[โมเดลนี้ไม่รองรับรูปภาพ จึงตัดรูปภาพออก]",
        _VI: "[Mô hình không nhận hình ảnh nên các hình đã bị bỏ qua.]",
        _ES: "[El modelo no admite imágenes, así que se han omitido.]",
        _RU: "[Модель не принимает изображения, поэтому они опущены.]",
    },
    "files_too_large_note": {
        _EN: "[Too large or too many to be sent: {files}]",
        _HANS: "【文件过大或过多，未能发送：{files}】",
        _HANT: "【檔案過大或過多，未能傳送：{files}】",
        _JA: "［サイズまたは数が上限を超えたため送信できませんでした：{files}］",
        _TH: "[ใหญ่เกินไปหรือมีจำนวนมากเกินกว่าจะส่งได้: {files}]",
        _VI: "[Quá lớn hoặc quá nhiều nên không gửi được: {files}]",
        _ES: "[Demasiado grandes o demasiados para enviarlos: {files}]",
        _RU: "[Слишком большие или слишком много, чтобы отправить: {files}]",
    },
    "files_failed_note": {
        _EN: "[These files were made but could not be sent: {files}]",
        _HANS: "【以下文件已生成，但未能发送：{files}】",
        _HANT: "【以下檔案已產生，但未能傳送：{files}】",
        _JA: "［次のファイルは作成されましたが、送信できませんでした：{files}］",
        _TH: "[สร้างไฟล์เหล่านี้แล้วแต่ส่งไม่สำเร็จ: {files}]",
        _VI: "[Các tệp này đã được tạo nhưng không gửi được: {files}]",
        _ES: "[Estos archivos se crearon, pero no se han podido enviar: {files}]",
        _RU: "[Эти файлы созданы, но отправить их не удалось: {files}]",
    },
    "open_jobs_note": {
        _EN: "[No longer waited for, possibly still running: {tools}]",
        _HANS: "【已不再等待，可能仍在运行：{tools}】",
        _HANT: "【已不再等待，可能仍在執行：{tools}】",
        _JA: "［待機を終了しました（まだ実行中の可能性があります）：{tools}］",
        _TH: "[เลิกรอแล้ว แต่อาจยังทำงานอยู่: {tools}]",
        _VI: "[Không chờ nữa, có thể vẫn đang chạy: {tools}]",
        _ES: "[Ya no se espera, pero quizá siga en marcha: {tools}]",
        _RU: "[Ожидание прекращено, возможно, ещё выполняется: {tools}]",
    },
    "too_long": {
        _EN: "This conversation has become too long for the model. Please start a new one or send less text.",
        _HANS: "这段对话对模型来说太长了。请开始新的对话，或少发一些内容。",
        _HANT: "這段對話對模型來說太長了。請開始新的對話，或少傳一些內容。",
        _JA: "会話がモデルの扱える長さを超えました。新しい会話を始めるか、送る文章を短くしてください。",
        _TH: "บทสนทนานี้ยาวเกินกว่าที่โมเดลรับได้ กรุณาเริ่มบทสนทนาใหม่หรือส่งข้อความให้สั้นลง",
        _VI: "Cuộc trò chuyện này đã quá dài đối với mô hình. Vui lòng bắt đầu cuộc mới hoặc gửi ít nội dung hơn.",
        _ES: "Esta conversación ya es demasiado larga para el modelo. Empieza una nueva o envía menos texto.",
        _RU: "Эта беседа стала слишком длинной для модели. Начните новую или пришлите меньше текста.",
    },
    "took_too_long": {
        _EN: "The model took too long (limit: {seconds} s), so I stopped waiting. Please try again or ask for less at once.",
        _HANS: "模型用时过长（上限 {seconds} 秒），我不再等待。请重试，或把问题拆小一些。",
        _HANT: "模型花費時間過長（上限 {seconds} 秒），我不再等待。請重試，或把問題拆小一些。",
        _JA: "モデルの応答に時間がかかりすぎたため（上限 {seconds} 秒）、待機を打ち切りました。"
        "もう一度試すか、一度に頼む内容を減らしてください。",
        _TH: "โมเดลใช้เวลานานเกินไป (สูงสุด {seconds} วินาที) จึงหยุดรอ กรุณาลองใหม่หรือขอทีละน้อยลง",
        _VI: "Mô hình phản hồi quá lâu (giới hạn {seconds} giây) nên tôi đã ngừng chờ. "
        "Vui lòng thử lại hoặc yêu cầu ít hơn mỗi lần.",
        _ES: "El modelo ha tardado demasiado (límite: {seconds} s) y he dejado de esperar. "
        "Inténtalo de nuevo o pide menos cosas a la vez.",
        _RU: "Модель отвечала слишком долго (предел: {seconds} с), и я прекратил ждать. "
        "Попробуйте ещё раз или спросите о чём-то меньшем.",
    },
    "failed": {
        _EN: "This did not work: {reason}",
        _HANS: "没有成功：{reason}",
        _HANT: "沒有成功：{reason}",
        _JA: "うまくいきませんでした：{reason}",
        _TH: "ไม่สำเร็จ: {reason}",
        _VI: "Không thành công: {reason}",
        _ES: "No ha funcionado: {reason}",
        _RU: "Не получилось: {reason}",
    },
    "in_circles": {
        _EN: "I was repeating the same steps without getting further, so I stopped here.",
        _HANS: "我一直在重复同样的步骤，没有进展，所以就此停下。",
        _HANT: "我一直在重複同樣的步驟，沒有進展，所以就此停下。",
        _JA: "同じ手順を繰り返すだけで先に進めないため、ここで中止しました。",
        _TH: "ทำขั้นตอนเดิมซ้ำ ๆ โดยไม่คืบหน้า จึงขอหยุดเพียงเท่านี้",
        _VI: "Tôi cứ lặp lại các bước cũ mà không tiến triển nên đã dừng lại ở đây.",
        _ES: "Estaba repitiendo los mismos pasos sin avanzar, así que me he detenido aquí.",
        _RU: "Одни и те же шаги повторялись без результата, поэтому на этом остановка.",
    },
    "out_of_steps": {
        _EN: "I stopped without finishing (steps used: {steps}).",
        _HANS: "用了 {steps} 步仍未完成，已停止。",
        _HANT: "用了 {steps} 步仍未完成，已停止。",
        _JA: "{steps}ステップ進めましたが、完了しないまま終了しました。",
        _TH: "หยุดโดยยังไม่เสร็จ (ใช้ไป {steps} ขั้นตอน)",
        _VI: "Tôi đã dừng lại khi chưa hoàn thành (đã dùng {steps} bước).",
        _ES: "Me he detenido sin terminar (pasos dados: {steps}).",
        _RU: "Работа остановлена незавершённой (сделано шагов: {steps}).",
    },
    "tool_off_note": {
        _EN: "[{tool} kept being called wrongly, so I am going on without it.]",
        _HANS: "【{tool} 多次调用有误，本次不再使用它。】",
        _HANT: "【{tool} 多次呼叫有誤，本次不再使用它。】",
        _JA: "［{tool} の呼び出しに何度も失敗したため、今回は使わずに続けます。］",
        _TH: "[เรียกใช้ {tool} ผิดซ้ำหลายครั้ง จึงทำต่อโดยไม่ใช้เครื่องมือนี้]",
        _VI: "[{tool} bị gọi sai nhiều lần nên lần này tôi tiếp tục mà không dùng nó.]",
        _ES: "[{tool} se ha llamado mal varias veces, así que sigo sin usar esa herramienta.]",
        _RU: "[{tool} несколько раз вызван с ошибкой, продолжаю без этого инструмента.]",
    },
    "broken_off_note": {
        _EN: "[The connection to the model broke off; the answer ends here.]",
        _HANS: "【与模型的连接中断，回答到此为止。】",
        _HANT: "【與模型的連線中斷，回答到此為止。】",
        _JA: "［モデルとの接続が途切れたため、回答はここまでです。］",
        _TH: "[การเชื่อมต่อกับโมเดลขาดหาย คำตอบจึงสิ้นสุดตรงนี้]",
        _VI: "[Kết nối với mô hình bị ngắt; câu trả lời dừng tại đây.]",
        _ES: "[Se ha cortado la conexión con el modelo; la respuesta termina aquí.]",
        _RU: "[Соединение с моделью прервалось, ответ обрывается здесь.]",
    },
    "internal_note": {
        _EN: "[Something went wrong inside the agent; the answer ends here.]",
        _HANS: "【智能体内部出错，回答到此为止。】",
        _HANT: "【智慧體內部出錯，回答到此為止。】",
        _JA: "［エージェント内部で問題が起きたため、回答はここまでです。］",
        _TH: "[เกิดข้อผิดพลาดภายในเอเจนต์ คำตอบจึงสิ้นสุดตรงนี้]",
        _VI: "[Đã xảy ra lỗi bên trong tác tử; câu trả lời dừng tại đây.]",
        _ES: "[Algo ha fallado dentro del agente; la respuesta termina aquí.]",
        _RU: "[Внутри агента произошёл сбой, ответ обрывается здесь.]",
    },
    "done": {
        _EN: "Done.",
        _HANS: "已完成。",
        _HANT: "已完成。",
        _JA: "完了しました。",
        _TH: "เสร็จแล้ว",
        _VI: "Đã xong.",
        _ES: "Hecho.",
        _RU: "Готово.",
    },
}
