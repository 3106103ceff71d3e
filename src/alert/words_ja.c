/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of notices in Japanese, with the words of docs/runbook.ja.md. Times are Japanese time. */
#include "alert/words.h"

const struct hk_words hk_words_ja = {
    .level = {"【情報】", "【警告】", "【緊急】"},
    .level_update = {"【情報・続報】", "【警告・続報】", "【緊急・続報】"},
    .over = "【復旧】",
    .test = "【テスト】",
    .level_name = {"情報", "警告", "緊急"},
    .label =
        {
            [HK_FACT_SEVERITY] = "重大度",
            [HK_FACT_DESTINATION] = "宛先",
            [HK_FACT_REASON] = "理由",
            [HK_FACT_EVENT_TYPE] = "イベント種別",
            [HK_FACT_COUNT] = "件数",
            [HK_FACT_VALUE] = "測定値",
            [HK_FACT_EXAMPLE] = "メッセージ例",
            [HK_FACT_FIELDS] = "ペイロード",
            [HK_FACT_SINCE] = "発生時刻",
            [HK_FACT_STORY] = "関連",
            [HK_FACT_DETAIL] = "直近のエラー",
            [HK_FACT_RULE] = "ルール",
            [HK_FACT_RELAY] = "通知元",
        },
    .field = {"", "（マスク対象）", "（ペイロードにありません）", "（ペイロードを読み取れません）"},
    .paused_label = "停止の理由",
    .next = "次の対応",
    .dashboard = "ダッシュボード",
    .colon = ": ",
    .measured = "{value}[ (しきい値 {limit})]",
    .still = "発生から{age}たちましたが、まだ解消していません。",
    .since = "{time} ({age}前)",
    .story_gap = " / ",
    .story_more = "ほか{n}件",
    .since_now = "{time}",
    .test_title = "このチャネルに通知が届きました[ ({relay})]",
    .test_text = "テスト通知です。異常はありません。対応は不要です。",
    .units = {"日", "時間", "分", "秒"},
    .unit_gap = "",
    .utc_offset_hours = 9,
    .zone = "JST",
    .kinds =
        {
            [HK_ALERT_DEAD_LETTER] =
                {.title = "[{dest} 宛の]デッドレターが{n}件発生[ ({reason})]",
                 .ended = "[{dest} 宛の]デッドレターはすべて対応済みです[ ({reason})]",
                 .text = "[{dest} 宛の]メッセージ{n}件を配信できず、デッドレターになりました。"
                         "内容は保存されています。対応を決めてください。",
                 .ended_text =
                     "すべて対応が済みました[ (累計{n}件)]。再投入、解決、破棄のいずれかが行われています。"},
            [HK_ALERT_DEAD_LETTERS_ABOVE] =
                {.title = "[{dest} 宛の]未対応デッドレターが{value}件 (しきい値 {limit}件)",
                 .ended = "[{dest} 宛の]未対応デッドレターが{limit}件を下回りました",
                 .text =
                     "[{dest} 宛の]未対応のデッドレターが{value}件あり、しきい値の{limit}件に達しました。",
                 .ended_text = "対応が進み、しきい値を下回りました。"},
            [HK_ALERT_DEAD_LETTERS_RISING] =
                {.title = "[{dest} 宛の]デッドレターが増加中: +{value}件 (しきい値 {limit}件)",
                 .ended = "[{dest} 宛の]デッドレターの増加が止まりました",
                 .text =
                     "[{dest} 宛の]メッセージが最近{value}件デッドレターになり、しきい値の{limit}件に達しました。",
                 .ended_text = "新たなデッドレターは、ほとんど発生していません。"},
            [HK_ALERT_OLDEST_AGE] =
                {.title = "[{dest} 宛の]未配信メッセージが最長{value}滞留 (しきい値 {limit})",
                 .ended = "[{dest} 宛の]滞留が{limit}以内に戻りました",
                 .text = "[{dest} 宛の]最も古い未配信メッセージが{value}待っています (しきい値 {limit})。",
                 .ended_text = "遅れていたメッセージの処理が終わりました。"},
            [HK_ALERT_BREAKER_OPEN] =
                {.title = "[{dest} の]ブレーカーが開きました",
                 .ended = "[{dest} の]ブレーカーが閉じました",
                 .text = "この宛先への送信が続けて失敗したため、送信を止めています[ (待機中 {n}件)]。"
                         "復旧したかどうかは自動で確かめます。",
                 .ended_text = "宛先が復旧し、待っていたメッセージの送信を再開しました。"},
            [HK_ALERT_PAUSED] =
                {.title = "宛先[ {dest}] が一時停止中です",
                 .ended = "宛先[ {dest}] の一時停止が解除されました",
                 .text = "手動で一時停止されています。再開するまで送信しません[ (待機中 {n}件)]。",
                 .ended_text = "待っていたメッセージの送信を再開しました。"},
            [HK_ALERT_STORE_UNREACHABLE] =
                {.title = "リレー[ {relay}] がデータベースに接続できません",
                 .ended = "リレー[ {relay}] のデータベース接続が復旧しました",
                 .text =
                     "接続が回復するまで、このリレーは配信できません。メッセージはデータベースに残っています。",
                 .ended_text = "配信を再開しました。"},
            [HK_ALERT_NO_PROGRESS] =
                {.title = "[{dest} への]配信が{value}止まっています",
                 .ended = "[{dest} への]配信が再開しました",
                 .text =
                     "送信待ちのメッセージがあるのに、{value}のあいだ何も送信されていません (しきい値 {limit})。"
                     "一時停止、ブレーカー、流量制限、キーの順序待ちによるものではありません。"
                     "リレーがすべて動いているか確認してください。",
                 .ended_text = "たまっていたメッセージを送信しています。"},
            [HK_ALERT_LAG_GROWING] =
                {.title = "[{dest} への]配信の遅れが拡大中: {value}遅れ",
                 .ended = "[{dest} への]配信の遅れの拡大が止まりました",
                 .text =
                     "最も古い送信待ちメッセージが予定より{value}遅れており、[過去{limit}にわたって]遅れが広がり続けています。",
                 .ended_text = "配信が追いつきました。"},
            [HK_ALERT_REQUEUE_FAILED] =
                {.title = "[{dest} 宛の]再投入{n}件が再び失敗[ ({reason})]",
                 .ended = "[{dest} 宛の]再投入の失敗分はすべて対応済みです[ ({reason})]",
                 .text = "再投入したデッドレター{n}件が、再び配信に失敗しました。原因が解消していません。",
                 .ended_text = "再び失敗したデッドレターは、すべて対応が済みました[ (累計{n}件)]。"},
            [HK_ALERT_KEY_MISSING] =
                {.title = "リレー[ {relay}] に暗号化メッセージの鍵がありません",
                 .ended = "リレー[ {relay}] の鍵待ちが解消しました",
                 .text =
                     "その鍵を必要とするメッセージは待機しており、失われていません。"
                     "リレーに鍵を設定してください。鍵ファイルが見つからない場合は、リレーが自動で再確認します。",
                 .ended_text = "待っていたメッセージは10分以内に配信されます。"},
        },
    .others =
        {
            [HK_ALERT_DEAD_LETTER] =
                {.title = "そのほかの原因でもデッドレターが{n}件発生",
                 .ended = "デッドレターはすべて対応済みです",
                 .text = "原因が多いため、まとめて通知します。ほかにもメッセージ{n}件を配信できず、"
                         "デッドレターになりました。内容は保存されています。対応を決めてください。",
                 .ended_text = "すべて対応が済みました[ (個別に通知した分のほかに累計{n}件)]。"},
            [HK_ALERT_BREAKER_OPEN] =
                {.title = "ほかにも{value}件の宛先でブレーカーが開いています",
                 .ended = "ほかの宛先のブレーカーもすべて閉じました",
                 .text = "宛先が多いため、まとめて通知します。ほかにも{value}件の宛先への送信を止めています。"
                         "復旧したかどうかは自動で確かめます。共通の原因がないか確認してください。",
                 .ended_text = "これらの宛先が復旧し、待っていたメッセージの送信を再開しました。"},
            [HK_ALERT_PAUSED] =
                {.title = "ほかにも{value}件の宛先が一時停止中です",
                 .ended = "ほかの宛先の一時停止もすべて解除されました",
                 .text = "ほかにも{value}件の宛先が手動で一時停止されています。再開するまで送信しません。",
                 .ended_text = "待っていたメッセージの送信を再開しました。"},
            [HK_ALERT_REQUEUE_FAILED] =
                {.title = "そのほかの原因でも再投入{n}件が再び失敗",
                 .ended = "再投入の失敗分はすべて対応済みです",
                 .text =
                     "原因が多いため、まとめて通知します。ほかにも再投入したデッドレター{n}件が再び配信に失敗しました。",
                 .ended_text = "すべて対応が済みました[ (個別に通知した分のほかに累計{n}件)]。"},
        },
};
