package environ

import (
	"path"
	"slices"
	"strings"
)

// A Form is what programs take a variable for, of which it is known that they look
// for no file and no command by such a value.
type Form struct {
	Says  string // what is taken, for who wrote something else
	Takes func(value string) bool
	names []string // in capitals; variables pass in any case
}

// FormOf is the form of a variable, nil where nothing is known of it.
func FormOf(name string) *Form {
	name = strings.ToUpper(name)
	for i := range forms {
		if slices.Contains(forms[i].names, name) {
			return &forms[i]
		}
	}
	return nil
}

// Rule says what a program may be given of a variable by a request that
// holds its name.
func Rule(name string) string {
	const path = "a secret's handle alone, or one absolute path of data that the agent may not write"
	switch f := FormOf(name); {
	case Steers(name):
		return "no request gives it to a program, whatever grants it: it makes programs load, run or trust something else; " +
			"give such things as arguments"
	case f != nil:
		return "a request gives it to a program with " + f.Says + ", " + path
	}
	return "a request gives it to a program with " + path
}

// IsPath reports whether value is an absolute path, and nothing else to any
// program: it has no character that parts words, options or elements of lists.
func IsPath(value string) bool {
	return strings.HasPrefix(value, "/") && path.Clean(value) == value && madeOf(value, "/_.+-")
}

// forms are all variables that are known. Who adds one must know that no program
// runs, loads or evaluates what the form takes: a shell evaluates what it takes for
// a number, for example, so that numbers have a form of their own.
var forms = [...]Form{
	{"any text", func(string) bool { return true }, []string{
		"ACCESS_TOKEN", "ANTHROPIC_API_KEY", "API_KEY", "API_TOKEN", "AUTH_TOKEN", "AWS_ACCESS_KEY_ID",
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
		"AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID", "BORG_PASSPHRASE", "CI_JOB_TOKEN",
		"CLOUDFLARE_API_TOKEN", "GEMINI_API_KEY", "GH_TOKEN",
		"GITHUB_TOKEN", "GITLAB_TOKEN", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_NAME",
		"HF_TOKEN", "MYSQL_PWD",
		"NODE_AUTH_TOKEN", "NPM_TOKEN", "OPENAI_API_KEY", "PASSWORD", "PGAPPNAME", "PGPASSWORD", "REDISCLI_AUTH",
		"RESTIC_PASSWORD", "RUST_LOG", "SENTRY_AUTH_TOKEN",
		"SLACK_TOKEN", "TOKEN", "TWINE_PASSWORD", "TWINE_USERNAME", "VAULT_TOKEN",
	}},
	{"a number", isNumber, []string{
		"COLUMNS", "GOMAXPROCS", "LINES", "PGCONNECT_TIMEOUT", "PGPORT", "PORT",
		"SOURCE_DATE_EPOCH",
	}},
	{"a number, true, false, yes, no, on, off, or a level such as info", isLevel, []string{
		"CGO_ENABLED", "CI", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "LOG_LEVEL", "LOGLEVEL", "NO_COLOR",
		"NPM_CONFIG_LOGLEVEL", "PIP_DISABLE_PIP_VERSION_CHECK",
		"PIP_NO_COLOR", "PIP_NO_INPUT", "POSIXLY_CORRECT", "PYTHONDONTWRITEBYTECODE", "PYTHONFAULTHANDLER", "PYTHONHASHSEED",
		"PYTHONUNBUFFERED", "PYTHONUTF8",
		"QUIET", "RUST_BACKTRACE", "VERBOSE",
	}},
	{
		"a number, true, false, a level such as info, or names with a colon such as app:*, parted by commas", isDebug,
		[]string{"DEBUG"},
	},
	{"a name of letters, digits and _ . , : @ + -", isName, []string{
		"AWS_DEFAULT_OUTPUT", "AWS_DEFAULT_REGION", "AWS_REGION", "COLORTERM", "GOAMD64", "GOARCH", "GOARM", "GOOS",
		"HOSTNAME", "LANG", "LANGUAGE",
		"LC_ADDRESS", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES", "LC_MONETARY",
		"LC_NAME", "LC_NUMERIC",
		"LC_PAPER", "LC_TELEPHONE", "LC_TIME", "LOGNAME", "NODE_ENV", "PGCHANNELBINDING", "PGCLIENTENCODING", "PGDATABASE",
		"PGGSSENCMODE", "PGHOST",
		"PGHOSTADDR", "PGSSLMODE", "PGTARGETSESSIONATTRS", "PGUSER", "PKG_VERSION", "TERM", "USER", "USERNAME",
	}},
	{"a time zone, a date, or a list of hosts, without .. and with / after letters and digits alone", isPlace, []string{
		"GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE", "NO_PROXY", "PGTZ", "TZ",
	}},
	{"a URL of a proxy, http://user:password@host:port/, or host:port", isProxy, []string{
		"ALL_PROXY", "FTP_PROXY",
		"HTTPS_PROXY", "HTTP_PROXY",
	}},
}

// madeOf reports whether value has letters and digits of ASCII and characters of
// others, and nothing else.
func madeOf(value, others string) bool {
	return !strings.ContainsFunc(value, func(c rune) bool { return !isAlnum(c) && !strings.ContainsRune(others, c) })
}

func isAlnum(c rune) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }

func isNumber(value string) bool {
	return !strings.ContainsFunc(value, func(c rune) bool { return c < '0' || c > '9' })
}

func isLevel(value string) bool {
	return isNumber(value) || slices.Contains(strings.Fields(`true false yes no on off full random always never auto
		silly trace debug verbose http info notice warn warning error err crit critical alert emerg fatal panic silent none`), strings.ToLower(value))
}

// isDebug takes no plain name: scripts write $DEBUG before a command.
func isDebug(value string) bool {
	for part := range strings.SplitSeq(value, ",") {
		if name, _, some := strings.Cut(part, ":"); !isLevel(part) && (!some || name == "" || !madeOf(name, "_.-") ||
			!madeOf(part, "_.-:*")) {
			return false
		}
	}
	return true
}

func isName(value string) bool { return madeOf(value, "_.,:@+-") && !strings.Contains(value, "..") }

// isPlace takes no path that begins at the root or leads upwards.
func isPlace(value string) bool {
	for i, c := range value {
		if c == '/' && (i == 0 || !isAlnum(rune(value[i-1]))) {
			return false
		}
	}
	return madeOf(value, "_.,:@+-*<>[] /") && !strings.Contains(value, "..")
}

// isProxy takes no path behind the host: some programs take one for a socket.
func isProxy(value string) bool {
	if scheme, rest, some := strings.Cut(value, "://"); some {
		if !slices.Contains(strings.Fields("http https socks4 socks4a socks5 socks5h"), strings.ToLower(scheme)) {
			return false
		}
		value = strings.TrimSuffix(rest, "/")
	}
	return !strings.ContainsAny(value, "/\\ \t\r\n") && !strings.HasPrefix(value, "~") && value != "." && value != ".."
}
