"""fence.bans - names of libraries that reach outside, and the rule each falls under.

For: the standard library name by name, and the libraries people use beside it.
Never: a name that is pure. What stands here is what a replay would get another answer from.
Was wrong once: whole modules. `uuid.UUID(text)` and `os.path.join` were reported, and people switched it off.

A name stands for all below it; the longest that fits counts, and "free" takes one out again.
"()" is what a call gives: "pathlib.Path().read_text".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final


def _under(room: str, names: str) -> Iterator[str]:
    return (f"{room}.{name}" for name in names.split())


LOGGED: Final = "debug info warning warn error critical exception log"
LOOPS: Final = ("asyncio.get_running_loop()", "asyncio.get_event_loop()", "asyncio.new_event_loop()")

CLOCK = [
    "time",
    *_under("datetime.datetime", "now utcnow today"),
    "datetime.date.today",
    *_under("arrow", "now utcnow"),
    *_under("pendulum", "now today tomorrow yesterday"),
    *_under("whenever", "Instant.now ZonedDateTime.now OffsetDateTime.now SystemDateTime.now Date.today_in_system_tz"),
    *_under("django.utils.timezone", "now localtime localdate"),
    *_under("pandas.Timestamp", "now today utcnow"),
    *_under("email.utils", "localtime"),
    "timeit",
    "os.times",
]
CHANCE = [
    "random",
    "secrets",
    *_under("uuid", "uuid1 uuid4 uuid6 uuid7 uuid8 getnode"),
    *_under("os", "urandom getrandom"),
    "ssl.RAND_bytes",
    "email.utils.make_msgid",
    *_under("builtins", "hash id"),
    "numpy.random",
    *_under("torch", "rand randn randint randperm"),
    *"ulid nanoid shortuuid ksuid cuid cuid2 uuid6 uuid7 uuid_utils uuid_extensions faker mimesis coolname".split(),
    *_under("bson", "ObjectId objectid.ObjectId"),
    "bcrypt.gensalt",
    "cryptography.fernet.Fernet.generate_key",
]
ENVIRONMENT = [
    *_under("os", "environ environb getenv getenvb getpid getppid getpgid getlogin getuid geteuid getgid getegid"),
    *_under("os", "getgroups cpu_count process_cpu_count uname name getloadavg sysconf confstr get_terminal_size"),
    *_under("os.path", "expanduser expandvars"),
    *_under("sys", "argv orig_argv platform executable prefix base_prefix exec_prefix path flags version warnoptions"),
    *_under("time", "altzone timezone tzname daylight tzset mktime"),
    "datetime.date.fromtimestamp",
    *"platform locale getpass pwd grp resource sysconfig site psutil dotenv decouple environs".split(),
    *_under("socket", "gethostname getfqdn"),
    *_under("multiprocessing", "cpu_count"),
    "shutil.get_terminal_size",
    "importlib.metadata",
    *_under("zoneinfo", "TZPATH available_timezones reset_tzpath"),
    "tzlocal",
    "pydantic_settings.BaseSettings()",
]
FILES = [
    "os",
    *_under("os.path", "exists lexists isfile isdir islink ismount isjunction getsize getmtime getatime getctime"),
    *_under("os.path", "samefile sameopenfile realpath abspath relpath"),
    "builtins.open",
    *_under("io", "open open_code FileIO"),
    *_under("gzip", "open"),
    *_under("bz2", "open BZ2File"),
    *_under("lzma", "open LZMAFile"),
    *"codecs.open tokenize.open wave.open fileinput linecache shutil tempfile mmap fcntl dbm shelve filecmp".split(),
    *_under("glob", "glob iglob glob0 glob1"),
    *_under("pathlib.Path", "cwd home"),
    *_under("pathlib.Path()", "read_text read_bytes write_text write_bytes open exists is_file is_dir is_symlink stat"),
    *_under("pathlib.Path()", "lstat iterdir glob rglob walk mkdir rmdir touch unlink rename replace resolve absolute"),
    *_under("pathlib.Path()", "expanduser samefile owner group chmod lchmod symlink_to hardlink_to readlink copy move"),
    *"sqlite3 apsw aiosqlite aiofiles anyio.open_file anyio.Path importlib.resources pkgutil.get_data".split(),
    *_under("pandas", "read_csv read_excel read_json read_parquet read_sql read_sql_query read_sql_table read_pickle"),
    *_under("numpy", "load loadtxt genfromtxt fromfile save savez savetxt memmap"),
    *_under("configparser", "ConfigParser().read RawConfigParser().read"),
    *_under("logging", "FileHandler handlers"),
]
NETWORK = [
    *"socket ssl socketserver select selectors http.client http.server urllib.request urllib.robotparser".split(),
    *"ftplib smtplib imaplib poplib nntplib telnetlib xmlrpc.client xmlrpc.server webbrowser".split(),
    *_under("asyncio", "open_connection start_server open_unix_connection start_unix_server"),
    *(
        f"{loop}.{name}"
        for loop in LOOPS
        for name in "create_connection create_server getaddrinfo sock_connect".split()
    ),
]
THREADS = [
    *"threading _thread concurrent.futures sched gevent eventlet trio curio greenlet joblib asgiref.sync".split(),
    *_under("asyncio", "to_thread run run_coroutine_threadsafe new_event_loop set_event_loop Runner"),
    *(f"{loop}.{name}" for loop in LOOPS for name in "run_in_executor call_soon_threadsafe run_until_complete".split()),
    *"anyio.to_thread anyio.from_thread anyio.run starlette.concurrency fastapi.concurrency".split(),
]
PROCESS = [
    *"subprocess multiprocessing signal pty pexpect sh plumbum".split(),
    *_under("os", "fork forkpty system popen kill killpg abort _exit wait waitpid wait3 wait4 waitid nice setsid"),
    *_under("os", "execl execle execlp execlpe execv execve execvp execvpe posix_spawn posix_spawnp startfile"),
    *_under("os", "spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe register_at_fork"),
    *_under("asyncio", "create_subprocess_exec create_subprocess_shell subprocess"),
    "sys.exit",
    *_under("builtins", "exit quit"),
]
SLEEP = [*"time.sleep gevent.sleep eventlet.sleep trio.sleep signal.pause".split()]
TERMINAL = [
    *_under("builtins", "print input breakpoint"),
    *_under("pprint", "pprint pp"),
    *_under("sys", "stdin stdout stderr __stdin__ __stdout__ __stderr__"),
    *_under("logging", LOGGED),
    *_under("logging.getLogger()", LOGGED),
    *_under("logging.Logger()", LOGGED),
    *_under("logging.LoggerAdapter()", LOGGED),
    *_under("warnings", "warn warn_explicit"),
    *_under("traceback", "print_exc print_exception print_stack print_tb print_last"),
    *"pdb readline curses getpass.getpass loguru.logger rich.print rich.console.Console().print".split(),
    *_under("structlog.get_logger()", LOGGED),
    *_under("click", "echo secho prompt confirm"),
    *_under("typer", "echo secho prompt confirm"),
]
GLOBAL = [
    *"random.seed numpy.random.seed locale.setlocale decimal.setcontext os.chdir os.fchdir os.umask os.putenv".split(),
    *_under("sys", "setrecursionlimit setswitchinterval settrace setprofile addaudithook"),
    *_under("warnings", "filterwarnings simplefilter resetwarnings"),
    *_under("logging", "basicConfig disable addLevelName setLoggerClass"),
    *"atexit faulthandler gc.disable gc.enable gc.set_threshold importlib.reload os.unsetenv".split(),
    "contextvars.ContextVar().set",
]
APP = [
    *_under("onefold.App()", "call start deliver read history alarm fork ingest receipt cell open runs approvals"),
    *_under("onefold.App()", "parked blobs reflexes fleet acting_as"),
    "onefold.Port()()",
]
FREE = [
    *_under("time", "struct_time strptime gmtime localtime ctime asctime strftime"),
    "random.Random",
    *_under("numpy.random", "default_rng RandomState Generator SeedSequence PCG64"),
    *_under("os", "path sep linesep pathsep altsep curdir pardir extsep devnull fspath fsencode fsdecode PathLike"),
    *_under("os", "strerror DirEntry stat_result"),
    *_under("socket", "inet_aton inet_ntoa inet_pton inet_ntop htons htonl ntohs ntohl timeout"),
    "http.client.responses",
    "locale.strxfrm",
    *_under("subprocess", "list2cmdline CompletedProcess"),
    *_under("shutil", "ignore_patterns"),
    "signal.Signals",
    *_under("logging", "getLogger Logger LogRecord"),
    "ssl.VerifyMode",
    *_under("faker.Faker()", "seed_instance"),
]
PURE_ONLY = {"asyncio": "threads", "asyncio.sleep": "sleep", "anyio": "threads", "anyio.sleep": "sleep"}
"""What an actuator may use and a pure function may not: the passes of an actuator make these durable."""
PURE_FREE = frozenset({"asyncio.iscoroutinefunction", "asyncio.iscoroutine", "asyncio.isfuture"})

BANS: Final[dict[str, str]] = {
    name: rule
    for rule, names in {
        "clock": CLOCK,
        "chance": CHANCE,
        "environment": ENVIRONMENT,
        "files": FILES,
        "network": NETWORK,
        "threads": THREADS,
        "process": PROCESS,
        "sleep": SLEEP,
        "terminal": TERMINAL,
        "global-state": GLOBAL,
        "outside-step": APP,
        "free": FREE,
    }.items()
    for name in names
}

CLIENTS: Final = frozenset(
    "requests httpx httpx2 aiohttp urllib3 websockets websocket paramiko asyncssh grpc boto3 botocore aioboto3 aiobotocore "
    "stripe openai anthropic mistralai cohere groq ollama litellm together replicate "
    "google.generativeai google.genai google.cloud googleapiclient azure twilio sendgrid mailgun postmarker slack_sdk "
    "telegram discord tweepy praw github gitlab jira notion_client shopify paypalrestsdk braintree square plaid adyen "
    "redis valkey pymongo motor psycopg psycopg2 asyncpg pg8000 pymysql MySQLdb aiomysql mysql oracledb pyodbc cassandra "
    "clickhouse_connect snowflake elasticsearch opensearchpy qdrant_client pinecone weaviate chromadb neo4j memcache "
    "pymemcache kafka aiokafka confluent_kafka pika aio_pika nats celery dramatiq rq zeep ldap3 pysftp minio "
    "firebase_admin supabase mcp apprise aiosmtplib requests_oauthlib pusher ably".split()
)
"""Libraries that talk to other services: what they call by a small letter goes over the network."""
HARMLESS: Final = frozenset(
    "URL Timeout Limits Headers QueryParams Request Response Cookies types exceptions errors error models schemas "
    "auth BasicAuth DigestAuth HTTPBasicAuth ClientTimeout Retry codes status_codes utils escape filters "
    "construct_event Json Jsonb sql helpers request_validator".split()
)
"""Parts of such libraries that are only values."""
