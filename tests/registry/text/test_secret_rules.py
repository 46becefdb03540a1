"""Secrets are masked completely; code, logs and prose without secrets are unchanged."""

import random
import string
import time
from pathlib import Path

from benchmarks.secrets.pieces import is_missed, read_pieces
from registry.text.privacy.masking import mask_value
from registry.text.privacy.rules import OWN_RULES, load_rules, use_own_rules
from registry.text.privacy.secrets import mask_secrets

PIECES = list(read_pieces(Path(__file__).parents[3] / "benchmarks/secrets/texts"))


def random_text(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "4fX9" + "".join(random.Random(length).choices(letters, k=length - 4))


def masked(text: str) -> str:
    return mask_secrets(text, b"key")


def test_at_most_four_planted_secrets_in_a_hundred_are_missed() -> None:
    planted = [piece for piece in PIECES if piece.secrets]
    missed = [piece.text for piece in planted if is_missed(piece, masked(piece.text))]
    assert len(planted) == 940
    assert len(missed) <= len(planted) * 0.04, missed


def test_masking_leaves_code_logs_and_prose_without_secrets_as_they_are() -> None:
    innocent = [piece.text for piece in PIECES if not piece.secrets]
    assert len(innocent) > 500
    assert [text for text in innocent if masked(text) != text] == []


def test_secrets_are_masked_in_prose_and_in_output_of_programs() -> None:
    cases: list[tuple[str, str]] = [
        ("the wifi pw at the new office is %s if you need to print", "Alder-52-fern"),
        ("log in as admin and then %s, it still kicks me out", "Gr4nite!moss"),
        ("you get in with %s as the password", "Plum_Tree_88"),
        ("our shared account: kim / %s", "uX3-birch-Owl"),
        ("pw for the archive is %s - how do I open it?", "snowdrop"),
        ("the passphrase is %s.", "cobalt anchor meadow kite"),
        ("bring the keys, door code is %s", "2580#"),
        ("my PIN for the alarm is %s", "4719"),
        ("the safe combination is %s", "32-17-05"),
        ("%s is your verification code", "448812"),
        ("비번 안 바꿨으면 %s 일걸?", "maple1234"),
        ("그 서버 비번은 %s 이야", "qlalfdlek"),
        ("basic auth 걸었어 stage / %s 명령 줘", "wkaqlsl"),
        ("와이파이 이제 %s 로 변경했어", "rlawkddn77"),
        ("도어락 %s 로 바뀌었습니다", "1970#"),
        ("bot.run('%s')", "MTA1lahTlEDTCzNSkdpS2fodR.YT8M7q.8dj1gK3MS9s3tY0vqpC3Mdx4aXe"),
        ("dsn := 'gopher:%s@tcp(127.0.0.1:3306)/shop'", "burr0w_77"),
        ("DB_PASS=%s ./run", "terra.F1rma"),
        ("$ ldapsearch -x -D cn=svc -w %s -b dc=shop", "Ginger.Fern"),
        ("$ curl -b 'session=%s' https://shop.example", "a8Xk2nQ0vZ3bYcA7Lm4Tr9Ws"),
        ("| user | password |\n|---|---|\n| lena | %s |", "up-L0ad-it"),
        ("name,email,password\nlena,l@shop.example,%s", "csv9plum"),
        ("page.fill('#password', '%s')", "kettle!77"),
        ("2FA setup key %s for the app", "JBSW7Y3DPEHPK3PX"),
        ("the password on the lab printer is %s so print away", "marmalade"),
        ("username kim, password %s, then click connect", "tortoise7"),
        ("is %s a strong enough password?", "Dragonfly88"),
        ("Mein Passwort ist %s, was tun", "Hamburg1887"),
        ("암호 걸린 파일인데 %s 이거 넣으면 열려", "영업팀2024!"),
        ("비밀번호를 초기값에서 %s 로 바꿔줘", "manager2"),
        ("배포 전에 KAKAO_ADMIN_KEY=%s를 넣어 줘", "7f01ced6ac5e08572c71683b8525ccb7"),
        ("유심 PIN은 %s이고 잠겼어", "5190"),
        ("복합기 코드 %s 치고 스캔", "77120"),
        ("$ op read op://Home/db/password\n%s", "grass.Hopper"),
        ("Cookie: theme=dark; clearance=%s", "vL4MjpibUYQxohWZrBNdXih6Ivqwht370"),
        ("POST https://chat.example.org/services/%s", "T0Y9U6MD2/B0ZNWMRQQ/bFu2875bewlI9h64TOC07c7y"),
        ("Server=db;Uid=app;Pwd=%s;", "Cinnamon"),
        ("my bank login: %s", "Pebble-77"),
        ("try this one: %s, please", "dop_v1_" + "7f3a9c0e51b24d68" * 4),
        ("he sent me %s", "0f1e2d3c4b5a69788796a5b4c3d2e1f0-us14"),
        ("sam: what was the pw?\nkai: %s", "plumpudding8"),
        ("that note says %s, it must be the admin password", "Falcon-Nest-3"),
        ("exp 12/27 cvv %s", "123"),
        ("it printed %s", "812868-394198-906964-213400-106763-807748-983576-765383"),
        ("they were all set to %s and nobody cared", "Summer2019!"),
        ("how good is (%s)?", "7Dwarfs&SnowWhite"),
        ("no, the second letter is a zero, it's %s", "L0ckness_Monday"),
        ("my card PIN (%s) does not open the gate", "5093"),
        ("WIFI:T:WPA;S:Hut;P:%s;;", "espresso4two"),
        ("제가 쓰는 비밀번호 %s 이거 무슨 뜻일까", "gozldthsus"),
        ("the license is %s", "VK7JG-NPHTM-C97JM-9MPGT-3V66T"),
        ("heslo je %s, pomoc", "Medvidek77"),
        ("keypad at the shed says press %s", "*7716#"),
        ("lockbox on the rail, locker 14, code %s please", "3381"),
        ("the bike lock: it is %s from today", "4-0-8-2"),
        ("export RELEASE_COOKIE=%s", "q7z3xk4m5n6p7r8s9t0u1v2w3x4y"),
        ("const KEY = '%s' // the weather api key", "0f1e2d3c4b5a69788796a5b4c3d2e1f0"),
        ('wallet = new Wallet("%s")', "0x" + "4c0883a69102937d" * 4),
        ("HEROKU_API_KEY=%s", "d5ee00eb-dfe2-4d38-d67f-e158b1856a74"),
        ("kind: Secret\ndata:\n  pg: %s", "cDRzc3dvcmQhMjM="),
        ('command: ["redis-server", "--requirepass", "%s"]', "Wren8kettle"),
        ("$ net use Z: \\\\nas\\scan /user:CLINIC\\scan %s /persistent:yes", "Toast&Jam88"),
        ("$ doveadm auth test kim '%s'", "plinth gutter 19"),
        ("register => 16135550188:%s@sip.shop.example/16135550188", "kR6dwq02Nv"),
        ("  password........................%s", "tuba!Yoke7"),
        ("what's the password?\nkai: you said it's %s for the jump host", "tr0ut-river"),
        ("Alle: das WLAN-Passwort lautet %s", "Tasse-Honig-7"),
        ("엑셀 열기 암호는 %s 이고요", "rmqdu!장부"),
        ("smtp.login('bot@shop.example', '%s')", "kqzvwxnmrtypbhjd"),
        ("look: %s", "https://hooks.slack.com/services/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"),
        ("the master password is %s.", "velvet tractor humming eleven"),
        ("Passphrase: %s\nExpire-Date: 1y", "seven dry otters wander"),
        ("둘째 칸은 %s 이래", "Rlacl1972!"),
        ('type_in("#pw").send_keys("%s")', "tlrxkr#41"),
        ("keyPassword '%s'", "gooseberry"),
        ("    secret = %s", "radish5radish"),
        ("메타마스크\n%s\n이게 뭐야", "lunar hobby drastic panel invest coyote maple unveil stamp genre oval twelve"),
        ("시드 문구래요\n%s", "가을 나무 도토리 라디오 마당 바구니 사다리 아침 자전거 찻집 카메라 타조"),
        ("name | gate\nana | %s", "*2218#"),
        ("assistant: what is the alarm code?\nuser: %s", "90417"),
        ("현관은 %s 누르고 들어오세요", "칠공이오"),
        ("the keypad takes %s", "two nine four four hash"),
        ("visa, exp 09/27, the three digits on the back are %s", "816"),
        ("Ihr Code: %s", "QX7M-2PRA-9TLD"),
        ("requirepass %s", "mole-Hill-3x"),
        ("dbpass=%s", "tulip-9x-garden"),
        ("new wifi password: **%s**", "Rabbit-88-hole"),
        ('{"text": "**Password:** %s"}', "plum-Kettle-4"),
        ("이 값 pa-%s를 넣고 다시 배포해 줘", "ZvD9lxmneJUhXVmC1sRbRyQoF5hLxmhwcuXSlC5l9mO"),
        ("his gun safe is %s stop", "left 55 right 20 left 71"),
        ("금고는 %s 순서", "좌로 72 우로 15 좌로 48"),
        ("OTP 키값이 %s 라고 나와", "4TRFLNL2XHNESWDB"),
        ("mc alias set prod https://minio.example ops %s", "V8sKd02LmQxZ7pTnB4yRwE9uJ1hGfA3c"),
        ("kubectl create secret generic a --from-literal=smtp='%s'", "mailman-77-qq"),
        ('expect "password:"\nsend "%s\\r"', "hb_scl!7781"),
        ("mongodb://app:%s@10.0.4.12:27017/chat", "s@ltFlats4"),
        ("$dbpass = '%s';", "Tulip9xqz!"),
        ("ldap_bindpw=%s", "tulip-9x-garden"),
        ("BINDPW %s", "tulip-9x-garden"),
        ("rootpw %s", "tulip-9x-garden"),
        ("userpass=%s", "tulip-9x-garden"),
        ("adminpass=%s", "tulip-9x-garden"),
        ("rootpass: '%s'", "tulip-9x-garden"),
        ("spring.dbpw=%s", "tulip-9x-garden"),
        ("datadog = '%s'", "3f9a1c7b2e8d4056af13bc97de02468f"),
        ("okta = '%s'", "00aQ7kZp3LxVt9RmWc2YbNf5Hs8JdGe4Tu1Ov6XiKq"),
        ("2FA: enter %s instead of the QR code", "MZXW 6YTB OI2G K43U MFZX G4DJ"),
        ("Backup codes:\n1. %s", "4471 9920\n2. 8830 1127"),
        ("NEXUS_PW = '%s'", "gravel.kettle"),
        ("JWT_SECRET=%s", "98Mz4qTJy3nBJtbiGPY6B/UGemaO/AkgSwlWLsZbGsV="),
        ('login("%s")', "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"),
        ("auth = ('svc', '%s')", "brownbear"),
        ("enable secret 0 %s", "Wjsansrk1"),
        ("master.key is missing, he pasted it in teams: %s", "dad27b115048da206e0923d7695e8ed5"),
        ("비밀번호가 11월 1일부터 %s에서 바뀝니다", "4885"),
        ("세대 %s 현관", "19931204"),
        ("공유계정이 mungcam / %s 이에요", "mung2mung2"),
        ("iptime admin/%s 으로 로그인했는데", "tkfkdgo77"),
        ("--set auth.password=%s", "Pine\\,Cone\\,12"),
        ("my SSN is %s", "187-52-4256"),
        ("PresharedKey = %s", "/o66oPfKLm6Gj+li4bTuQROMPA5WPQOVFQJ4BNqVDxA="),
        ("X_ADMIN_PASSWORD: %s", "Grxt5.fillmore"),
        ("{Port:8080 SMTPPass:%s FeatureX:true}", "BCVLW7miGJBhzmaOXmMcy1ggJBDM"),
        ('add_header("X-Naver-Client-Secret", "%s")', "0KmdMoUzoc"),
        # near words of public keys and units
        ("our new website password %s", "Sommer2024x"),
        ("export SITE_SECRET=%s", "Xk29fLmQ88zzTpXw31"),
        ("redis cache cluster password %s", "Sommer2024x"),
        ("우리집 비번 %s 쪽지에 적어뒀어", "4471"),
        ("비밀번호 %s 줄게요", "0917"),
        ("kubectl get secret db -o jsonpath='{.data.password}' | base64 -d\n%s", "hunter2Xkq99zPlm"),
        ("DB_PASSWORD=%s", "beach-is-here"),
        ("define('AUTH_KEY',         '%s');", "[x9Lq~ 2W|m;Zt*KfP@d3{vRb8&hYj$uNc6)eSg1!aTo4^iQw7%lXp0-kBz5=yVr"),
        ("-o username=nasadmin,password='%s',vers=3.0", "sktm nas 2021"),
        ("the password is still %s just dont share it", "potatosalad_forever"),
        ("택배사 계약번호 50231177 , 비번 %s", "0417soom"),
        ("google backup codes, which one first?\n%s", "4471 9026\n8350 1187"),
        ("설정 키 캡처해둔 게 %s 인데", "FHMYRKULHBSKJSEF"),
        ("apple 앱 암호 만들어서 icloud 메일 넣는데 %s 그대로 넣어?", "qzkt-wmvb-xhyr-dnle"),
        ("복구코드는 있어요 %s 이거 써도 되나", "9856da4dd0def57a66062df8eca5c9697cb6ece4e6d16d08"),
        ("Host key (Priya only): %s", "914260"),
        ("iDRAC 10.0.0.120 root/%s", "calvin-dkslwy"),
        ("the word they ask for is %s", "marzipan"),
        ("newrelic_license='%s'", "eu01xx3f9a1c7b2e8d4056af13bc97de02468fNRAL"),
        # right after a name: elsewhere it would be a commit or an id
        ("wifi pw %s", "f7c3b9a2de"),
        ("공유기 초기 비번 admin / %s", "a1b2c3d4e5"),
        ("access key %s is rejected", "b7fa338f-7089-4668-9126-5ee234c90d1d"),
        ("npx cypress run --record --key %s", "3222e961-be68-444d-bd99-12ea67b04279"),
        ("my old pass is definitely %s", "correct-gravel-9-foxes"),
        ("psk=%s\nhidden=true", "seven-otters-in-a-canoe"),
        ("Database=claims;Uid=claims_ro;Pwd={%s};Encrypt=yes", "k8;Tundra?Lamp"),
        ("mount -o username=tv,password=%s,uid=1000", "popcorn-night"),
        ("db_pass %s, prefix wp_", "gHt7_kelpie"),
        ('key = hmac; secret = Buffer.from("%s")', "ThisIsMyJwtSigningKey2024!!"),
        # on the next line of a shell, and on a command's standard input
        (">>> settings.SECRET_KEY\n'%s'\n>>> 1", "django-insecure-h&v3k@0x!p_9w#zq7mre$u2b(tl5y8fn^6a+j=4"),
        ('10.0.0.4:6379> CONFIG GET requirepass\n1) "requirepass"\n2) "%s"', "brine.oak.71"),
        ('sudo -S apt-get update <<< "%s"', "mango tango 4"),
        # in code: names with a type, keys of functions that sign
        ("let password: string = '%s';", "plum9kettle"),
        ('let secret: &str = "%s";', random_text(32)),
        ("createHmac('sha256', '%s')", "plum9kettle"),
        ('hmac.new(b"%s", text, sha256)', "plum9kettle"),
        ("createCipheriv('aes-256-cbc', '%s', iv)", "plum9kettle"),
        ("openssl_encrypt($text, 'aes-256-cbc', '%s', 0, $iv)", "plum9kettle"),
        ('AES.new(b"%s"[:16], AES.MODE_GCM)', "plum9kettle"),
        ('CryptoJS.AES.encrypt(text, "%s")', "plum9kettle"),
        ('URLSafeSerializer("%s")', "plum9kettle"),
        ("https://calendar.example/ical/kim/private-%s/basic.ics", "0f1e2d3c4b5a69788796a5b4c3d2e1f0"),
        # words by chance
        ("비밀번호: %s", "copper lantern mosaic drift"),
        ('암호는 "%s" 입니다', "seven quiet otters"),
        ("passphrase → %s", "velvet hammer autumn pickle"),
        ("the backup passphrase, four words: %s", "blue tractor sings early"),
        ("ssh-keygen -t ed25519 -N '%s' -f id", "gravel moon teapot"),
        # in commands and logs
        ("export BW_SESSION=%s", random_text(43) + "="),
        ("sshd[811]: Invalid user %s from 192.168.3.9 port 50222", "Gatherer55!"),
        ("보안카드 17번 %s 입력하래", "5512"),
        ("etcdctl --user kim:%s get a", "tarn9kettle"),
        ("twine upload -u kim -p %s dist/*", "tarn9kettle"),
        ('expect "assword:" { send "%s\\r" }', "Fern#Hill22"),
        # a user's name and password in base64
        ("auths:\n  ghcr.io:\n    auth: %s", "YWRtaW46cGx1bTk="),
        ("//npm.example.org/:_auth=%s", "YWRtaW46cGx1bTk="),
        ("curl -H 'Authorization: Basic %s' https://shop.example", "YWRtaW46cGx1bTk="),
        # links that log their owner in
        ("magic link sent to kim: https://app.example.org/m/%s", random_text(32)),
        ("비밀번호 재설정 링크 https://app.example.org/u/%s 눌러 보세요", random_text(22)),
        ("GET /users/reset-password/%s 200", random_text(40)),
        # next to a user name or address
        ("hosting: admin@tulip.nl | %s", "Gracht+22"),
        ("Heating app user flat3 / %s. Bins on Tuesday", "warmfeet22"),
        ("and now it's %s, so log out the others", "pizzamargherita99"),
        # Korean words typed on an English layout, Hangul, keypads
        ("비번은 %s 야", "dhseh36.5"),
        ("메모장에 '회사메일 %s' 라고", "gkskfh77**"),
        ("무인접속 암호 %s", "Wlqdmfh-rkwk"),
        ("급여 파일 암호가 %s 인데", "2026급여!인사"),
        ("초대 비번은 %s입니다", "3반최고"),
        ("공동현관 %s 누르고", "열쇠 1234 종"),
        ("Door downstairs %s. Letterbox key in the flowerpot", "#5190E"),
        ("old password lost, the recovery code is %s.", "R99598"),
        ("staff room door code has changed to %s", "2917X"),
        # in configuration lists: mail relays, cookies, headers, variables
        ("[smtp.example.org]:587 post@tarn.example:%s", "Tarn-9-kuvasz"),
        (
            "# HTTP Cookie File\n.tv.example\tTRUE\t/\tTRUE\t1826812011\tLOGIN\t%s",
            random_text(40) + ":" + random_text(60),
        ),
        ("X-Shop-Client-Secret: %s", "RdRKwoOVhy"),
        ("naver:\n  client-secret: %s", "GatTqcAnql"),
        ("  MIXER_RECORD_KEY: %s", "3f03c93b-289f-4399-80ad-fd3eb1a5b815"),
        # after a misspelt name, in the other alphabet, near a link
        ("wifi is LeChat, pasword %s, checkout at 11", "ronron3000"),
        ("make it a card: pasword: %s", "seagull"),
        ("zip 비번 영타로 친 거라 %s 둘 다 해봤어", "1004천사"),
        ("엑셀 암호는 '%s' 예요", "무지개떡볶이"),
        ("photos https://fotos.example.org/g/12, password %s, until friday", "lavender-otter"),
        ("my son says it is %s with capital G but I see wrong credentials", "Geraniums1944"),
        # recovery codes
        ("two of my github recovery codes are left: %s", "7848f-1318a and b89c0-77782"),
        ("구글 백업코드 10개중에 %s 이거 썼나", "6234 5592"),
        ("디스코드 복구 코드 남은 게 %s 중에", "f8yi-e9x2 랑 33fw-m1lw"),
        ("2FA without the QR: %s", "xepn bqbe wjit tlsq cmls jtat fnob vmuh"),
        # arguments and settings of tools, registrars and vendors
        ("snmpwalk -v2c -c %s 10.0.0.9 sysDescr", "ro_press_line"),
        ("xcrun notarytool submit app.zip --apple-id dev@shop.example --password %s --wait", "wkqz-hbtr-mvxd-pjnc"),
        ("Auth/EPP code: %s", "tR8!kQ2vWz#m"),
        ("NCLOUD_ACCESS_KEY_ID=%s", "q7Rk2mXc9Zt4Lw8Bv3Yd"),
        ('requests.get(url, auth=("editor", "%s"))', "k3Rv Qm8x t2Yd Lw5n B7cz pH4s"),
        ("K3S_URL=https://10.0.3.11:6443 K3S_TOKEN=%s sh -", f"K10{'1fa08487' * 8}::server:7540c227389d29e4"),
        ('.Item("https://mail.example/configuration/sendpassword") = "%s"', "kvqe wpxn ztod hmru"),
        ("spring.mail:\n  password: %s   # 앱 비밀번호", "qkzm vhwe jntr bxoa"),
        ("printer wont join. typed pass %s five times", "Tr0ut-Creek-Rd"),
        ("aligo:\n  userid: dreamclinic\n  key: %s", "4omjlmuxnrsxoipshrqfhjbc0puunfbk"),
        ("you've got 30 seconds, disarm is %s", "60418"),
        ("최민호,%s,총무", "790622 - 1693433"),
    ]
    for template, secret in cases:
        text = masked(template % secret)
        assert "[secret:" in text
        assert secret not in text
        before, after = template.split("%s")
        assert text.startswith(before)
        assert text.endswith(after)


def test_a_second_password_in_a_sentence_is_masked_too() -> None:
    assert "biscuittea04" not in masked("account locked, tried Biscuit&Tea04 and then the older one biscuittea04")
    assert "1004" not in masked("사무실 현관 비밀번호 2580*0317이고 탕비실은 1004. 메일에 넣어서 써줘")
    assert "bluewhale-18" not in masked("the wifi code is bluewhale-19 and not bluewhale-18")


def test_settings_after_a_password_are_not_masked() -> None:
    assert masked("user=kim,password=hunter2,host=db.local").endswith("],host=db.local")
    both = masked("snmpwalk -A authpass123 -x AES -X privpass123 10.0.0.1")
    assert "pass123" not in both
    assert both.endswith("] 10.0.0.1")


def test_a_code_at_any_distance_after_its_name_is_masked_completely() -> None:
    for width in range(60, 110):
        shown = masked(f"The door code {'.' * width}: 448813")
        assert shown.endswith("448813") or "448" not in shown, shown


def test_texts_about_passwords_and_codes_are_not_masked() -> None:
    cases: list[str] = [
        "컬럼 추가라 테이블 잠금이 짧습니다. 롤백하면 0047은 그대로 둬도 됩니다.",
        "행 잠금 순서가 다릅니다. 가맹점 1042 행을 먼저 갱신하세요",
        "The password is weak.",
        "the password_age was changed to Tomato22 for all of them",
        "the password is stored as argon2id since Python3",
        "Your password was changed on 12 May 2024.",
        "docs: use a password:\nlib/python3.11/site-packages/shop/auth.py-257-\n--",
        "error code is 1045, the response code for the login is 4010",
        "GPIO pin 17 is high, it's pin 14 of 24",
        "and then pass updated2 to the renderer22",
        "the password is required and the passphrase is optional here",
        "use argon2 as the password hash and a sentence as the passphrase",
        "we moved the password to vault, then changed the password to use PBKDF2",
        "my password manager is bitwarden",
        "user admin, password expired",
        "    :param password: new password",
        "username: string, password: string",
        "비밀번호는 필수입니다. 비번을 새걸로 바꿨어",
        "INVALID_PASSWORD(40101), PIN_LOCKED(42301)\nfun handle(user: String, password: CharArray) {",
        "key: password\n- name: GIT_SHA\n  value: 79bb00395cc88b5f29fb6310948787fd3fd0ae1c",
        "비밀번호를 평문으로 저장하지 말고 bcrypt로 바꿔줘",
        "암호: 최소 8자",
        "error code: use 10061 to look it up, the port is 5432",
        "ED25519 key fingerprint is SHA256:pmYudtD0ghfXH7ZF3Zx62pJjR0bWMBUIxEPXRtWnKgi.",
        "$ git add secret.py\nnothing to commit",
        "로그인 API 는 v2 로 변경했습니다",
        "암호화는 AES256 으로 하고 키는 32바이트",
        "인증번호 6자리를 3분 안에 입력하세요",
        "def f(user, password):\n    return user2, password2",
        'client.password = "S3"; user.token.refresh_token_2(a)',
        '"session_id": "cursor_session_20250929_1430"',
        "I usually ssh to prod-db-02, log in with Office365 and unzip to backup2024",
        "The printer is an HP LaserJet M404dn, my iPhone13 has iOS17, the admin panel is Django4.2",
        "my login is jsmith88 and the account is acct_4471",
        "-----BEGIN CERTIFICATE-----\nv7mlmlY6QRplBTyep9CkXscZMsXRZ4ZjiBLHesITrI8e9v5NbCr5rSoAN9iuVfUH",
        "서버는 db-prod-01 로 바꿨고 버전은 v2.4.0-rc1 로 변경",
        "gate 4471 at KIX, the door is 2100 mm high and the safe distance is 1500",
        "use promo code 48213, the item code is 30422 and the status code: 40052",
        "using RSA key 6D56F602E8A548F3130961C707B1727CC524EF87",
        "gpg: using EDDSA key 6D56F602E8A548F3130961C707B1727CC524EF87, alarm2 and format2",
        '<img alt="key" src="data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAYAAAAf8haligFyrBWS5hEG0">',
        "password:reset:count:4412",
        "아이디는 tjdwls99 입니다",
        "author: tjdwls99\nuser: tjdwls99\ncommit by tjdwls99: git config user.name tjdwls99",
        "zkfka1 and rmdir1",
        "cache key deps-c0bad2ec19a962f2ed900836b2a4664b7079521c, commit 9ae3105bd40f92e251ed174acc0be5aacc3e87a8",
        'Digest realm="cam", qop="auth", nonce="c6be30d058a0e3ed58048f423719ad14"',
        "AKIAIOSFODNN7EXAMPLE is in the docs of every key",
        "X509_V_ERR_AUTHORITY_KEY_IDENTIFIER_CRITICAL 90",
        "password: 'required|same:password|min:8'",
        "DB_PASSWORD=여기에_비밀번호_입력",
        "비밀번호 칠 때마다 틀려요, 로지텍 k380 이고 윈도우11",
        "set npm_config_user_agent and sk-ant-your-key-of-2024-goes-here",
        "i forgot my password again!!! it must have one of all of that!! and is not working!!",
        "127.0.0.1:6379> AUTH\n(error) ERR wrong number of arguments for 'auth' command",
        "Cache not found for input keys: linux-node20-35f49275f9248dc5ddb2de19da0cc60b7e0e08f6a011aae10e3011bee76e1027",
        "VAPID 공개키 kw18U1cL63g9d75Dc7JuEK7Mvr7502GN-KQn__qfS6w 이거 노출돼도 되나요? 개인키는 서버에만 있어요",
        "비밀번호는 개별 안내드렸으며 문의는 내선 3021로 주세요",
        "AMI ami-0a1b2c3d4e5f67890 with a key pair",
        "시리얼번호 R3CTI72NOBY, 서비스센터 예약할때 비번 풀어서 맡겨야 하나요?",
        "usernamePassword(usernameVariable: 'NEXUS_USR', passwordVariable: 'NEXUS_PSW')",
        'map.put("token", "accessToken"); headers.set("X-Csrf-Token", csrfToken)',
        "No session, channel or nickname 'b_zqchannel75010965' in the registry",
        "passed over: /tmp/x-98/popen-gw2/of_lo0/home/.claude/projects/-ann/5e550000-0000-4000-8000-000000000001.jsonl",
        "define('CACHE_KEY', 'wp_menu_cache'); define('AUTH_KEY', 'put your unique phrase here')",
        "비번은 8자리 이상 20chars 이하, 1password 는 비싸요, 4096bytes",
        "set the login page's background to #1e1e2e, the password field's border to #D0D5DD80",
        "로그인 화면 배경색을 #1E1E2E로 바꿔줘\n비밀번호 오류 문구 색상은 #F04452",
        "color #2F8F83, see draft#section-2, Sheet1!A1:B20 and HEAD~3",
        'slack_url = "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"',
        "커밋 5c0426a8fd9512c1af1426409654015d34659402 에서 토큰 검증 로직 빠진 것 같은데",
        "비밀번호가 일치하지 않습니다\n정부24 공동인증서 로그인하다 뜬건데",
        "STRIPE_PUBLISHABLE_KEY=pk_live_51tkrgsx6YGXB3Iyq3x35vGMzXd7v9yV7XFgrRN7LmSGyCPRE3Io8ZWYy9A55az3c3LrCjN",
        "ACba2d52ce1b4aa9b2efaf691d16d10d99 is our account SID, message SM3881ab527967c7e0ebd136c22daed1de",
        "SamAccountName PasswordLastSet\n-------------- ---------------\nkiosk01\nblank date means never set?",
        'kubelet  Error: secret "api-keys-v2" not found, credential jenkins-ssh-2 is missing',
        "#ReserveVT=6\n#KillUserProcesses=no, root login",
        "비밀번호 변경은 esp32에서, 비번 설정은 서버24에서 하고 로그인은 엑셀2016 에서 해요",
        "which app password do I need for Thunderbird115, and what of one on a YubiKey5C",
        "the tests pass on node20 and the old ones pass with python311",
        "비번 오류 코드 4012 는 뭐고 비번 변경 요청 번호 20240117 은 뭐야",
        "the code is E4012, the gate is 1200 wide and the close code=1006",
        "password reset landed in 3f22793f, password_digest e4f90b1c22",
        ">>> settings.SECRET_KEY is None\nTrue\n>>> len(token)\n'1234567'",
        "bob@mail.com | Marketing2 | Berlin, joe@x.net / Room204, sales@x.com / +1-202-555-0147",
        "Either pass `fields` or `sign_count`, v$session where username = x",
        "f'PWD={db_password};UID={db_user}'",
        "Secret key  sk_live_••••••••••••4Kd2\nAPI Key: 8f3a●●●●●●●●●●●●",
        "DESKTOP-8KJ2LQ1 or LAPTOP-Y0425FB asks for a password",
        "와이파이는 iptime_5G_4F21 에 접속",
        "-0a9c8b7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a1b libs/auth-token",
        "100644 blob 1f2e3d4c5b6a79880716253443526170fedcba98 key.go",
        "CHECKSUMS:\n LogIn: 1b2e3d4c5f60718293a4b5c6d7e8f901\n TokenField: 5c4b3a2918076f5e4d3c2b1a0918273645546372",
        "X-Client-Secret: YourClientSecret, client_secret: MyAppSecret, client_secret: RedirectToLogin",
        "x-secret: getFromVault(name)",
        "PARTITION_KEY=3f03c93b-289f-4399-80ad-fd3eb1a5b815",
        "2FA setup: open code with that word, then tell them what they want. key json http html yaml",
        'backup codes doc: util-v2a1.py and fall-back, password read-only, 암호는 "2025년결산" 파일에 있어',
        "# HTTP Cookie File\n.tv.example\tTRUE\t/\tTRUE\t1826812011\tPREF\ttz=Europe.Lisbon",
        "scp scan@nas.example.org:backups/2024-07.tar.gz . and mail info@ppang.kr: please",
        "setup code uses grpc with pkgs from main, hold ctrl with shft keys down",
        "2FA: open pwsh then type cmds with args, key json html next text http xlsx kube exit",
        "비밀번호 찾기 화면을 한글로 번역해줘 3단계로",
        "비밀번호 오류 메시지 한글로 바꿔줘 5회까지 틀릴 수 있어",
        "비밀번호 안내문 한글로 써줘 오피스2019 기준",
        "비밀번호 한영 키가 안 먹어요 윈도우10 인데",
        "비밀번호는 authService, 암호는 AuthStore, 비밀번호는 login_form, 비번은 iPhone_backup",
        "패스워드는 VARCHAR_MAX",
        "비밀번호는 NOT_NULL, 이메일도 NOT_NULL",
        *(
            f"{name}_KEY=3f03c93b-289f-4399-80ad-fd3eb1a5b815"
            for name in ("PRODUCT", "ISSUE", "EVENT", "TENANT", "LOOKUP", "MESSAGE")
        ),
        "client_secret = getAuthKey, client_secret: newIdpApp, client_secret = useSsoCfg",
        "SID                  : S-1-5-21-3623811015-3361044348-30300820-1013",
        "the session id is mcp_session_20261127_171551_82b6 now, session_id: claude-code_session_20261127_1715",
        *(
            f"Door code for the flat {'.' * n} arrives by text, the booking ref is HMX4K2QJ9B, ask her"
            for n in range(70)
        ),
        "add and update empty passphrase regression tests (kim)",
        "비밀번호: show hide toggle, 비밀번호: min eight chars only",
        "Invalid user oracle from 10.0.0.4 port 50222, invalid user ftpuser1 from 10.0.0.4",
        'tokenizer = AutoTokenizer.from_pretrained("meta-llama/Llama-2-7b-hf", use_fast=True)',
        "System.Core, Version=4.0.0.0, Culture=neutral, PublicKeyToken=b77a5c561934e089",
        "redis://[:password]@host:port/db and mongodb://[user:password]@host:port, password: the key",
        "Password was given but private key is not encrypted. The password was stolen.",
        "the key calls napi_create_bigint_int64",
        "Close open connections with code 1001 (going away)",
        "        key, r1, r2, jointype=None, r1postfix=None, r2postfix=None,",
        "bearer = OAuth2PasswordBearer(tokenUrl=url)",
        "the login is affected, see GHSA-f4xh-w4cj-qxq8",
        "비밀번호는 '필수항목' 입니다, 초기 비번은 '생년월일' 이에요, 비밀번호는 '일치하지않음' 오류",
        'rate_limit_token_endpoint: str = "10/minute"; token: str = Depends(oauth2)',
        'hmac.new(b"testing message", text); Serializer("django.core.serializers")',
        "shop.py:12:        pass\nshop.py:13:    # Creates a new CoordSys3D oriented as the user wants",
        "Pass an address (e.g. `0.0.0.0`) to accept connections, the code listens on 0.0.0.0",
        '+ secret_arn = "arn:aws:secretsmanager:eu-west-1:207683912892:secret:shop-edge-v2-fe00aa"',
        "image: registry.example/auth-api:1ec7e20180dcfcd6ea3dcfd1acd8c5ef0e5a6ac7",
        "this is the code\nmax_tokens: 4096",
        "basic authentication, basic understanding, auth=required, auth: optional",
        "open /verify/2026-10-12T10-00-00-report-final, /login/how-to-configure-sso-2024-edition",
        "verification link https://github.com/a/b/commit/3f22793fe4f90b1c22a3f22793fe4f90b1c22aaa",
        "암호 입력 창이 계속 떠요 윈11 23H2 업데이트 뒤부터",
        "is my password in it?\n-----BEGIN CERTIFICATE-----\n"
        "MIIFazCCA1OgAwIBAgIRAIIQz7DSQONZRGPgu2OCiwAwDQYJKoZIhvcNAQELAFhb\n"
        "ROuzK+A3iDRQsNk1ZzCJEjfJHFyUMVCSIW8gEgWGRAi5pX07RoDj7ST3r53ipagg\n-----END CERTIFICATE-----",
        "$ gpg --list-keys\npub   rsa4096/8F38CF21DDD0938A 2021-03-02 [SC]\nwhich is my signing key?",
        "the access token expired\nX-Amzn-Trace-Id: Root=1-6713d3c6-70c5beb0e5ae77c8636b1b71",
        "$ md5sum pin_1.8.zip new.zip\nb836381082d73dbcedf3b859b23ec232  pin_1.8.zip",
        f"key: node-modules-Linux-{'13b0abd3' * 8}",
        'the access token expired\netag: W/"5e-nZjPjGWbXudHg4pHFoClp9fOFFe"',
        "password: this must have been a joke",
        "the access token expired\ncf-ray: 8d1f3a2b7c9e4f10-ICN",
        "63b46322ad54e7f5acb58835bd9cc0fe04263113 비밀번호 재설정\nec0caecc660630014f6372d8ec16b580e2bff05d 로그인",
        "jsonwebtoken: wrong checksum\n  expected 8cdaa20aad4084265e0c906f69e6b6bfcdab198752dbd37f371786f22d76765a",
        "storage.write(key: 'access_token', value: res.data['accessToken']);",
        "der API token ist in der Durchschnittswertberechnung verboten",
        # output of programs: diffs, minified JavaScript, packages
        "diff --git a/password.py b/password.py\nindex c0d58b76..4d434375 100644\n--- a/password.py",
        "const clientSecret = this.#clientAuthentication.clientSecret;",
        "this.#pendingAccessToken = this.#pendingAccessToken || existing?.token.refreshToken;",
        "var isScalar = (token2) => !!token2 && (token2.type === 'scalar');\n authToken = connectionConfig?.authToken,",
        "ii  login    1:4.13+dfsg1-1+deb12u1   amd64   system login tools\nii  zlib1g-dev:amd64   1:1.2.13.dfsg-1",
        "Setting up passwd (1:4.13+dfsg1-1+deb12u1) ...\nSetting up openssl (3.0.19-1~deb12u2) ...",
        "debug1: password, OpenSSH_9.2p1 Debian-2+deb12u6, OpenSSL 3.0.19",
        "sshd[1]: Failed password for root from 185.220.101.7 port 40180 ssh2\n\nfail2ban 설정 좀",
        "our password policy against NIST 800-63B?",
        "SPEC CHECKSUMS:\n  KakaoSDKAuth: 212a0c44d7118f58cd0518ecc4774eb7800c9c06",
        "release api@914b395731c7: cannot read 'token'",
        "the pinned key is sha256//pCS2L477hkJRTrGLIrR/bikDBd8gzCxoLQ+wSgvlWYi=",
        "git rev-parse HEAD:vendor/keys\nefff13e99834622bde4f03b5a66ccd6e615305e0",
        "vault kv put secret/app username=app password=@/run/pw.txt",
        "  DB_PASSWORD:  <set to the key 'password' in secret 'db-creds-v3'>  Optional: false",
        "the lock on the left, 22 turns, then the right lock, 8 turns",
    ]
    for text in cases:
        assert masked(text) == text


def test_a_hexadecimal_secret_after_its_name_is_not_taken_for_a_digest() -> None:
    secret = "3f2a9c1d7be04586a1c2d3e4f5061728394a5b6c"
    for template in (
        "token:\n%s /api/v1",
        "My api key is\n%s config.yml",
        "GITHUB_TOKEN\n%s .env",
        "token=%s /api/v1",
        "CHECKSUMS:\napi_key=%s",
        "CHECKSUMS:\n  token: %s",
        "SPEC CHECKSUMS:\nsee below\n  my token is %s",
        "password list CHECKSUMS: x\ntoken=%s",
        "see CHECKSUMS: below\nmy token is %s",
    ):
        assert secret not in masked(template % secret), template


def test_a_password_that_looks_like_a_wifi_name_or_version_is_masked() -> None:
    cases: list[tuple[str, str]] = [
        ("wifi password: %s", "Skynet_5G"),
        ("와이파이 비번은 %s", "Hunter_5G"),
        ("password %s", "Tiger5G"),
        ("log in as root with %s", "Tiger5G"),
        ("admin / %s", "Skynet_5G"),
        ("my password is\n%s", "Skynet_5G"),
        ("%s is the wifi password", "Tiger_5G"),
        ("비번은 %s", "MBP-AB12CD3"),
        ("password: %s", "version12"),
        ("the password is %s", "chapter42"),
    ]
    for template, password in cases:
        assert password not in masked(template % password), template


def pieces_of(text: str) -> set[str]:
    return {text[at : at + 12] for at in range(len(text) - 11)}


def test_a_secret_of_any_length_is_masked_completely() -> None:
    cases_of_noted: list[str] = [
        "API_TOKEN=%s",
        "access_token: %s",
        '{"refresh_token": "%s", "expires_in": 3600}',
        "--token %s --now",
        "Secret Key: %s",
        "the client secret is %s",
        "토큰은 %s 입니다",
        "GET /reset?token=%s&page=2",
        "Cookie: theme=dark; session=%s; a=1",
        "Authorization: Bearer %s",
        "https://ann:%s@shop.example",
        "<api_token>%s</api_token>",
        "export API_TOKEN='%s'",
    ]
    for length in [12, 301, 5_000]:  # above every limit of the rules
        for noted in cases_of_noted:
            secret = random_text(max(length, 24) if "Cookie" in noted or "?" in noted or "Bearer" in noted else length)
            text = masked(noted % secret)
            assert not pieces_of(secret) & pieces_of(text)
            before, after = noted.split("%s")
            assert text.startswith(before)
            assert text.endswith(after)


def test_a_key_with_few_digits_is_masked_and_a_long_name_is_not() -> None:
    for template in ("auth=%s", "키는 %s 입니다", "here's the token for staging: %s, use that"):
        for key in ("afVcnqRoQiBPErXSvvX1IIPb", "jMFvWNQbahWqzKHwVKVqQA8AdHxHHPUe", "iEMkXrraWTNFMgxBoKwZ"):
            assert key not in masked(template % key), template
        for name in ("getUserByIdAndNameForV2", "XMLHttpRequestEventTarget", "convertUTF8ToHTMLInIOS"):
            assert masked(template % name) == template % name


BODY = [
    "MIIEpAIBAAKCAQEA" + random_text(48),
    random_text(64, string.ascii_letters + "+/0189"),
    random_text(64),
    "dGhlIGVuZA==",
]
BLOCK = ["-----BEGIN RSA PRIVATE KEY-----", *BODY, "-----END RSA PRIVATE KEY-----"]


def test_a_private_key_is_masked_in_every_form_of_quotation() -> None:
    cases_of_quoted: list[str] = [
        "> {line}",
        "# {line}",
        "- {line}",
        "+{line}",
        "    {line}",
        "keys/id_rsa:{number}:{line}",
        "{number}:{line}",
        "| {number} | {line} |",
        '"{line}\\n"',
        "     {number}\t{line}",
        " * {line}",
        "// {line}",
        "| {number} | {line} | ok |",
        'echo "{line}" >> id_rsa',
    ]
    for quoted in cases_of_quoted:
        for last in [6, 4]:
            lines = [quoted.format(line=line, number=number) for number, line in enumerate(BLOCK[:last], 1)]
            text = masked("\n".join(["look:", *lines, "and then?"]))
            assert [line for line in BODY[: last - 1] if line[:12] in text] == []
            assert text.startswith("look:\n")
            assert text.endswith("and then?")


def test_secrets_are_masked_in_lists_and_field_names_too() -> None:
    token = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
    masked = mask_value({token: [1, (token, None)], "ok": True}, b"key")
    mark = next(iter(masked))
    assert masked == {mark: [1, [mark, None]], "ok": True}
    assert mark.startswith("[secret:github-token:")


def test_a_private_key_in_a_kubeconfig_is_masked_and_the_certificate_is_not() -> None:
    import base64

    key = base64.b64encode("\n".join(BLOCK).encode()).decode()
    certificate = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMIIB").decode()
    text = masked(f"client-certificate-data: {certificate}\nclient-key-data: {key}\n")
    assert certificate in text
    assert key[:40] not in text
    for width in (64, 76):
        lines = [key[at : at + width] for at in range(0, len(key), width)]
        text = masked("tls.key: |\n" + "\n".join(f"    {line}" for line in lines) + "\nkind: Secret\n")
        assert [line for line in lines if line in text] == []
        assert text.endswith("\nkind: Secret\n")


def test_an_encoded_private_key_may_be_cut_anywhere() -> None:
    import base64

    key = base64.b64encode("\n".join(BLOCK).encode()).decode()
    for length in range(56, 84):
        assert key[:40] not in masked(f"client-key-data: {key[:length]}")


def test_the_end_of_a_private_key_is_masked_without_its_beginning() -> None:
    for quoted in ("{}", "> {}", "id_rsa:7:{}"):
        text = masked("\n".join(["look:", *map(quoted.format, BLOCK[2:])]))
        assert [line for line in BODY[1:] if line in text] == []
        assert text.startswith("look:\n")


def test_hostile_texts_are_scanned_in_linear_time() -> None:
    cases: list[str] = [
        "token=",
        "id/pw: 11111111111111111111",
        "password ",
        "login ",
        "a|password|b\n",
        "-----BEGIN PRIVATE KEY-----\n",
        f"private key {random_text(64)}\n",
        "password: a1b2c3\n",
        "recovery codes abcd-efgh ",
        "AuthToken: 5c4b3a2918076f5e4d3c2b1a0918273645546372 ",
        "setup key qzxv ",
        "auth aB3d ",
    ]
    for repeated in cases:
        start = time.process_time()
        masked(repeated * (20_000 // len(repeated)))
        assert time.process_time() - start < 1
    for repeated in (
        "비번 영타 ",
        "비번 영타 12가",
        "비번 한글로 가나다라12 ",
        "비번 영타 가나다라12 ",
        "금고 ",
        "postgres://a:",
    ):
        start = time.process_time()
        masked(repeated * (80_000 // len(repeated)))
        assert time.process_time() - start < 1
    alphanumeric = string.ascii_letters + string.digits
    for text in (
        "data:image/png;base64," + random_text(80_000, "0123456789abcdef"),
        "data:image/png;base64," + random_text(80_000, alphanumeric + "+/"),
        "pw" + random_text(80_000, alphanumeric),
        "access: " + random_text(80_000, "a1!% "),
        "kind: Secret\n" + "\n" * 80_000,
        "password: " + "!" * 80_000 + "1",
    ):
        start = time.process_time()
        masked(text)
        assert time.process_time() - start < 3, text[:20]


def test_a_user_can_add_rules_in_a_file(tmp_path: Path) -> None:
    (tmp_path / OWN_RULES).write_text(
        "keys = [['acme-key', 'acme_', '[a-z0-9]{16,}']]\ncommands = [['acme', '-k ']]\n[names]\nsecret = ['badge']\n"
    )
    text = f"acme_{'abcdefg7' * 3} and badge: {random_text(16)}\n$ acme up -k Kestrel9"
    assert masked(text) == text
    use_own_rules(tmp_path)
    try:
        assert masked(text).count("[secret:") == 3
        assert "[secret:acme-key:" in masked(text)
    finally:
        use_own_rules(tmp_path / "none")
    assert load_rules().digest
