package hostcalls

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
)

// A variable of a program reaches it in one of four ways. Those that steer
// programs are refused by name. A few are harmless whatever their value, and of
// some more it is known that no program takes a name in them for a file in the
// folder where it works. Of the others no list can be complete: each word of their
// value may be the name of a file, and a word without a slash is one in whatever
// folder a program goes to. They are passed on when no word leads to what the
// agent may write.

// isSteering reports whether a variable makes programs load, run or trust
// something else, whatever grants it and in whatever case it is written. Those
// that the host sets are among them.
func isSteering(name string) bool {
	name = strings.ToUpper(name)
	return !slices.Contains(ordinaryVariables[:], name) && (slices.Contains(steeringVariables[:], name) ||
		slices.ContainsFunc(steeringPrefixes[:], func(p string) bool { return strings.HasPrefix(name, p) }) ||
		slices.ContainsFunc(steeringSuffixes[:], func(s string) bool { return strings.HasSuffix(name, s) }))
}

// steeringPrefixes begin the variables of one program or library each. What
// begins so and steers nothing stands in ordinaryVariables.
var steeringPrefixes = [...]string{
	"ANSIBLE_", "AWS_", "AZURE_", "BASH", "BUNDLE_", "BUN_", "CARGO", "CCACHE_", "CGO_", "CLOUDSDK_", "CMAKE_", "CONDA_", "CORECLR_", "COREPACK_", "CPAN",
	"CURL_", "CVS", "DBUS_", "DENO_", "DISTCC_", "DOCKER_", "DOTNET_", "DYLD_", "ELECTRON_", "EMACS", "ERL_", "GCC_", "GCONV_", "GDB", "GDK_", "GEM_",
	"GH_", "GIO_", "GIT_", "GNUPG", "GPG_", "GRADLE_", "GROFF_", "GSETTINGS_", "GSS_", "GST_", "GTK_", "GTK2_", "GTK3_", "GUILE_", "HELM_", "HG", "JAVA_", "JDK_",
	"JULIA_", "KDE", "KRB5", "KUBE", "LDAP", "LD_", "LESS", "LIBGL_", "LIBVA_", "LUA_", "MAKE", "MALLOC_", "MANPATH", "MANOPT", "MANROFF", "MAVEN_", "MYSQL_",
	"NIX_", "NODE_", "NPM_", "NVIM", "NVM_", "OCAML", "OPENSSL_", "P11_", "PASSWORD_STORE_", "PERL", "PG", "PHP", "PINENTRY_", "PIPENV_", "PIPX_", "PIP_",
	"PKCS11", "PKG_", "PNPM_", "POETRY_", "PSQL", "PUPPETEER_", "PYENV", "PYTEST_", "PYTHON", "QML", "QTDIR", "QTWEBENGINE", "QT_", "RBENV", "RIPGREP_", "RLP_", "RSYNC_",
	"RUBY", "RUST", "R_", "SASL_", "SSH_", "SSL", "SUDO_", "SVN_", "SYSTEMD_", "TCL", "TERMINFO", "TEXFORMATS", "TEXINPUTS", "TEXMF", "TF_CLI_", "TK_", "UV_",
	"VIM", "VK_", "WGET", "XDG_", "YARN_", "ZDOT", "_JAVA_",
}

// steeringSuffixes end variables whose value is a command, options, or places to
// load from, whoever's they are.
var steeringSuffixes = [...]string{
	"ASKPASS", "BROWSER", "COMMAND", "EDITOR", "FLAGS", "LAUNCHER", "OPTIONS", "OPTS", "PAGER", "PRELOAD", "PROGRAM", "RCFILE", "SHELL", "STARTUP",
	"WRAPPER", "_ARGS", "_CMD", "_HOOK", "_INIT", "_INITRC", "_MODULES", "_OPT", "_PLUGIN", "_PLUGINS", "_RC", "_RSH", "_SSH",
}

// steeringVariables are those that neither tells.
var steeringVariables = [...]string{
	"AR", "AS", "AWKLIBPATH", "AWKPATH", "CC", "CDPATH", "CHARSETALIASDIR", "CLASSPATH", "COMPILER_PATH", "CPATH", "CPLUS_INCLUDE_PATH", "CPP", "CXX",
	"CXXCPP", "C_INCLUDE_PATH", "DEBUGINFOD_URLS", "DEPENDENCIES_OUTPUT", "ENV", "EXINIT", "F77", "FC", "FCEDIT", "FIGNORE", "FONTCONFIG_FILE", "FONTCONFIG_PATH", "FPATH",
	"GETCONF_DIR", "GHC_PACKAGE_PATH", "GLIBC_TUNABLES", "GLOBIGNORE", "GNUMAKEFLAGS", "GO111MODULE", "GOAUTH", "GOBIN", "GOCACHE", "GOCACHEPROG", "GODEBUG",
	"GOENV", "GOEXPERIMENT", "GOINSECURE", "GOMODCACHE", "GONOPROXY", "GONOSUMDB", "GOPATH", "GOPRIVATE", "GOPROXY", "GOROOT", "GOSUMDB", "GOTOOLCHAIN",
	"GOTOOLDIR", "GOVCS", "GOWORK", "HISTFILE", "HOME", "HOSTALIASES", "IFS", "INFOPATH", "INPUTRC", "LIBPATH", "LIBRARY_PATH", "LOCALDOMAIN", "LOCPATH",
	"M4PATH", "MAILCAPS", "MAILRC", "MC_DATADIR", "MORE", "NANORC", "NETRC", "NLSPATH", "NM", "OBJC_INCLUDE_PATH", "PATH", "PROMPT", "PS0", "PS1", "PS2", "PS3", "PS4", "RANLIB",
	"READNULLCMD", "REQUESTS_CA_BUNDLE", "RESOLV_HOST_CONF", "RES_OPTIONS", "SCREENRC", "SHELLOPTS", "SHLIB_PATH", "SQLITE_HISTORY", "STACK_ROOT", "SUNPRO_DEPENDENCIES", "TAPE",
	"TEMP", "TERMCAP", "TMP", "TMPDIR", "TMPPREFIX", "TZDIR", "VIRTUAL_ENV", "VISUAL", "WWW_HOME", "XAUTHORITY", "XENVIRONMENT", "XLOCALEDIR", "XMODIFIERS",
}

// ordinaryVariables are texts: programs take no word of them for a file in the
// folder where they work, though some begin like those that steer. A path in them
// is still a path.
var ordinaryVariables = [...]string{
	"ALL_PROXY", "CI", "DEBUG", "FTP_PROXY", "HOSTNAME", "HTTPS_PROXY", "HTTP_PROXY", "LANG", "LANGUAGE", "LC_ADDRESS", "LC_ALL", "LC_COLLATE", "LC_CTYPE",
	"LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME", "LOGNAME",
	"NO_PROXY", "QUIET", "TERM", "TZ", "USER", "USERNAME", "VERBOSE",
	"AWS_ACCESS_KEY_ID", "AWS_DEFAULT_OUTPUT", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_ID",
	"AZURE_CLIENT_SECRET", "AZURE_TENANT_ID", "GH_TOKEN", "GIT_AUTHOR_DATE", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_NAME", "GIT_COMMITTER_DATE",
	"GIT_COMMITTER_EMAIL", "GIT_COMMITTER_NAME", "MYSQL_PWD", "NODE_ENV", "NPM_TOKEN", "PGDATABASE", "PGHOST", "PGPASSWORD", "PGPORT", "PGUSER",
	"RUST_BACKTRACE", "RUST_LOG",
}

// harmlessVariables are passed on whatever their value: programs read numbers and
// colours of them.
var harmlessVariables = [...]string{
	"CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "POSIXLY_CORRECT", "SOURCE_DATE_EPOCH",
}

// variable says what is wrong with the value that a request, or a tool, gives a
// variable of a program that gets holds: "" nothing. A program may read what a
// path in it names, and run it: no such path leads to what the agent can have
// written.
func (h *Host) variable(holds caps.Set, v envVar) string {
	if slices.Contains(harmlessVariables[:], v.name) || v.value == "" {
		return ""
	}
	low := strings.ToLower(v.value)
	for _, mark := range []string{"$", "`", "\\", "file:", "%2f"} {
		if strings.Contains(low, mark) {
			return "has " + mark + " in it, by which programs make a path of what is none; leave it out"
		}
	}
	enters := ""
	if !slices.Contains(ordinaryVariables[:], strings.ToUpper(v.name)) {
		enters = h.mayEnter(holds)
	}
	if (enters != "" || strings.HasSuffix(strings.ToUpper(v.name), "PATH")) && slices.Contains(strings.Split(v.value, ":"), "") {
		return "has an empty element, which stands for the working folder"
	}
	words := paths(v.value)
	if len(words) > maxWords {
		return fmt.Sprintf("holds more than %d words", maxWords)
	}
	for _, word := range words {
		if why := h.leadsAstray(enters, word); why != "" {
			return why
		}
	}
	return ""
}

// mayEnter is a folder that a program can work in and the agent could write when
// the run began, beside the run's working folder; "" if there is none. holds is
// what the program gets.
func (h *Host) mayEnter(holds caps.Set) string {
	if h.cfg.Exec.SeesAll() {
		holds = h.exec.atLaunch
	}
	for _, g := range holds.Grants() {
		if g.Family == caps.FS {
			if scope := h.mayWrite(g.Scope); scope != "" {
				return scope
			}
		}
	}
	return ""
}

const (
	maxWords = 4 << 10 // of a value
	maxPath  = 4 << 10 // bytes; no system call takes a longer one
)

// paths are all of value that a program may take for a path: the words of it,
// whatever parts them, and from each beginning of one to the end, for what parts
// words can stand in a path.
func paths(value string) []string {
	list := []string{value}
	for at := 0; at < len(value) && len(list) <= maxWords; {
		word := value[at:]
		if n := strings.IndexFunc(word, isBetween); n >= 0 {
			word = word[:n]
		}
		if i := strings.IndexByte(word, '/'); i >= 0 {
			list = append(list, value[at+i:], word[i:]) // an option can stand right before a path: -I/usr/include
		}
		if word != "" {
			list = append(list, word)
		}
		at += len(word) + 1
	}
	return list
}

// isBetween reports whether a character parts the words of a value, as lists and
// options have them. All of them are ASCII.
func isBetween(c rune) bool { return c <= ' ' || strings.ContainsRune(`:;,=|&<>()[]{}'"@?*#!`, c) }

// leadsAstray says why word is no path that a program may be given: the agent may
// write what it leads to, or nobody can tell what it leads to. enters is a folder
// of the agent's in which the program may look for it, "" if there is none.
func (h *Host) leadsAstray(enters, word string) string {
	if len(word) > maxPath {
		return ""
	}
	if word[0] == '~' {
		return printable(word) + " depends on who reads it; write the path itself"
	}
	if slices.Contains(strings.Split(word, "/"), "..") {
		return printable(word) + " has .. in it; write the path itself"
	}
	if word[0] != '/' {
		return h.relative(enters, word)
	}
	leads, err := h.cfg.Exec.Leads(path.Clean(word))
	if errors.Is(err, ErrNoPrograms) {
		return printable(word) + " is in /proc, /sys, /dev or rlp's home, where the agent has files of its own; name a file elsewhere"
	}
	if err != nil {
		return "nobody can tell where " + printable(word) + " leads"
	}
	for _, p := range leads {
		if scope := h.mayWrite(p); scope != "" {
			return fmt.Sprintf("the agent may write %s, and so what the program finds by %s; take it out of fs_rw, or name a file elsewhere", scope, printable(word))
		}
	}
	return ""
}

// relative is leadsAstray for what is no absolute path. What a secret's value is a
// part of is no name that the agent knows.
func (h *Host) relative(enters, word string) string {
	first, _, _ := strings.Cut(word, "/")
	switch {
	case first == "." || h.cfg.Exec.Has(first):
		return printable(word) + " is in the working folder, where the agent's programs write; give another value, or the path of a file elsewhere"
	case enters == "" || h.cfg.Secrets != nil && len(h.cfg.Secrets.Named(first)) > 0:
		return ""
	}
	return printable(word) + " can be the name of a file in " + enters + ", which the agent may write and the program can be told to work in (env -C, git -C); " +
		"of few variables rlp knows that programs take them for no file, such as LANG and DEBUG: leave this one out, give an absolute path, or take " + enters + " out of fs_rw"
}

// mayWrite is the path that the agent could write when the run began and that is
// p, holds it, or lies in it; "" if there is none.
func (h *Host) mayWrite(p string) string {
	set := h.exec.atLaunch
	for _, mode := range []caps.Mode{caps.Write, caps.Delete} {
		if set.Check(caps.Request{Family: caps.FS, Mode: mode, Name: p}).Allow {
			return p
		}
	}
	for _, g := range set.Grants() {
		if g.Family == caps.FS && (g.Modes.Has(caps.Write) || g.Modes.Has(caps.Delete)) && (p == "/" || strings.HasPrefix(g.Scope, p+"/")) {
			return g.Scope
		}
	}
	return ""
}
