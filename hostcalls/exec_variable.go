package hostcalls

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
)

// A variable of a program is passed on in one of three ways. Those that steer
// programs are refused by name (isSteering). Of some more it is known what
// programs take them for, and they pass with values that are that
// (exec_texts.go). Of the others nothing is known: programs run what they name,
// with files, arguments or stdin of the agent's. They pass with a value that is no
// code and leads to none: a secret, or data which the agent may not write.

// isSteering reports whether a variable makes programs load, run or trust
// something else, whatever grants it and in whatever case it is written. Those
// that the host sets are among them.
func isSteering(name string) bool {
	name = strings.ToUpper(name)
	return formOf(name) == nil && (slices.Contains(steeringVariables[:], name) ||
		slices.ContainsFunc(steeringPrefixes[:], func(p string) bool { return strings.HasPrefix(name, p) }) ||
		slices.ContainsFunc(steeringSuffixes[:], func(s string) bool { return strings.HasSuffix(name, s) }))
}

// steeringPrefixes begin the variables of one program or library each. What
// begins so and steers nothing stands in forms.
var steeringPrefixes = [...]string{
	"ANSIBLE_", "AWS_", "AZURE_", "BASH", "BUNDLE_", "BUN_", "CARGO", "CCACHE_", "CGO_", "CLOUDSDK_", "CMAKE_", "CONDA_",
	"CORECLR_", "COREPACK_", "CPAN",
	"CURL_", "CVS", "DBUS_", "DENO_", "DISTCC_", "DOCKER_", "DOTNET_", "DYLD_", "ELECTRON_", "EMACS", "ERL_", "GCC_",
	"GCONV_", "GDB", "GDK_", "GEM_",
	"GH_", "GIO_", "GIT_", "GNUPG", "GPG_", "GRADLE_", "GROFF_", "GSETTINGS_", "GSS_", "GST_", "GTK_", "GTK2_", "GTK3_",
	"GUILE_", "HELM_", "HG", "JAVA_", "JDK_",
	"JULIA_", "KDE", "KRB5", "KUBE", "LDAP", "LD_", "LESS", "LIBGL_", "LIBVA_", "LUA_", "MAKE", "MALLOC_", "MANPATH",
	"MANOPT", "MANROFF", "MAVEN_", "MYSQL_",
	"NIX_", "NODE_", "NPM_", "NVIM", "NVM_", "OCAML", "OPENSSL_", "P11_", "PASSWORD_STORE_", "PERL", "PG", "PHP",
	"PINENTRY_", "PIPENV_", "PIPX_", "PIP_",
	"PKCS11", "PKG_", "PNPM_", "POETRY_", "PSQL", "PUPPETEER_", "PYENV", "PYTEST_", "PYTHON", "QML", "QTDIR",
	"QTWEBENGINE", "QT_", "RBENV", "RIPGREP_", "RLP_", "RSYNC_",
	"RUBY", "RUST", "R_", "SASL_", "SSH_", "SSL", "SUDO_", "SVN_", "SYSTEMD_", "TCL", "TERMINFO", "TEXFORMATS",
	"TEXINPUTS", "TEXMF", "TF_CLI_", "TK_", "UV_",
	"VIM", "VK_", "WGET", "XDG_", "YARN_", "ZDOT", "_JAVA_",
}

// steeringSuffixes end variables whose value is a command, options, or places to
// load from, whoever's they are.
var steeringSuffixes = [...]string{
	"ASKPASS", "BROWSER", "COMMAND", "EDITOR", "FLAGS", "LAUNCHER", "OPTIONS", "OPTS", "PAGER", "PRELOAD", "PROGRAM",
	"RCFILE", "SHELL", "STARTUP",
	"WRAPPER", "_ARGS", "_CMD", "_HOOK", "_INIT", "_INITRC", "_MODULES", "_OPT", "_PLUGIN", "_PLUGINS", "_RC", "_RSH",
	"_SSH",
}

// steeringVariables are those that neither tells.
var steeringVariables = [...]string{
	"AR", "AS", "AWKLIBPATH", "AWKPATH", "CC", "CDPATH", "CHARSETALIASDIR", "CLASSPATH", "COMPILER_PATH", "CPATH",
	"CPLUS_INCLUDE_PATH", "CPP", "CXX",
	"CXXCPP", "C_INCLUDE_PATH", "DEBUGINFOD_URLS", "DEPENDENCIES_OUTPUT", "ENV", "EXINIT", "F77", "FC", "FCEDIT",
	"FIGNORE", "FONTCONFIG_FILE", "FONTCONFIG_PATH", "FPATH",
	"GETCONF_DIR", "GHC_PACKAGE_PATH", "GLIBC_TUNABLES", "GLOBIGNORE", "GNUMAKEFLAGS", "GO111MODULE", "GOAUTH", "GOBIN",
	"GOCACHE", "GOCACHEPROG", "GODEBUG",
	"GOENV", "GOEXPERIMENT", "GOINSECURE", "GOMODCACHE", "GONOPROXY", "GONOSUMDB", "GOPATH", "GOPRIVATE", "GOPROXY",
	"GOROOT", "GOSUMDB", "GOTOOLCHAIN",
	"GOTOOLDIR", "GOVCS", "GOWORK", "HISTFILE", "HOME", "HOSTALIASES", "IFS", "INFOPATH", "INPUTRC", "LIBPATH",
	"LIBRARY_PATH", "LOCALDOMAIN", "LOCPATH",
	"M4PATH", "MAILCAPS", "MAILRC", "MC_DATADIR", "MORE", "NANORC", "NETRC", "NLSPATH", "NM", "OBJC_INCLUDE_PATH", "PATH",
	"PROMPT", "PS0", "PS1", "PS2", "PS3", "PS4", "RANLIB",
	"READNULLCMD", "REQUESTS_CA_BUNDLE", "RESOLV_HOST_CONF", "RES_OPTIONS", "SCREENRC", "SHELLOPTS", "SHLIB_PATH",
	"SQLITE_HISTORY", "STACK_ROOT", "SUNPRO_DEPENDENCIES", "TAPE",
	"TEMP", "TERMCAP", "TMP", "TMPDIR", "TMPPREFIX", "TZDIR", "VIRTUAL_ENV", "VISUAL", "WWW_HOME", "XAUTHORITY",
	"XENVIRONMENT", "XLOCALEDIR", "XMODIFIERS",
}

// VariableRule says what a program may be given of a variable by a request that
// holds its name.
func VariableRule(name string) string {
	const path = "a secret's handle alone, or one absolute path of data that the agent may not write"
	switch f := formOf(name); {
	case isSteering(name):
		return "no request gives it to a program, whatever grants it: it makes programs load, run or trust something else; " +
			"give such things as arguments"
	case f != nil:
		return "a request gives it to a program with " + f.says + ", " + path
	}
	return "a request gives it to a program with " + path
}

// variable says what is wrong with the value that a request, or a tool, gives a
// variable of a program that gets holds: "" nothing.
func (h *Host) variable(holds caps.Set, v envVar) string {
	f := formOf(v.name)
	switch {
	case f != nil && f.takes(v.value), h.isHandle(v.value):
		return ""
	case isOnePath(v.value):
		return h.leadsAstray(holds, v.value)
	case f != nil:
		return "takes " + f.says + ", a secret's handle alone, or one absolute path"
	}
	return "is no variable of which rlp knows that no program runs its value: write a secret's handle alone, or one " +
		"absolute path " +
		"(of letters, digits and _ . + -, without .. and a slash at its end) of data that the agent may not write; give " +
		"anything else as an argument, or leave it out"
}

// isHandle reports whether value is what begins like a handle, and nothing else:
// it is given no other value than a secret's.
func (h *Host) isHandle(value string) bool {
	if h.cfg.Secrets == nil {
		return false
	}
	words := h.cfg.Secrets.Named(value)
	return len(words) == 1 && words[0] == value
}

// isOnePath reports whether value is an absolute path, and nothing else to any
// program: it has no character that parts words, options or elements of lists.
func isOnePath(value string) bool {
	return strings.HasPrefix(value, "/") && path.Clean(value) == value && madeOf(value, "/_.+-")
}

// leadsAstray says why a program is not given the path: it is shown something else
// there, somebody can have it run what lies there, or the agent may write it.
func (h *Host) leadsAstray(holds caps.Set, written string) string {
	shown := func(p string) bool {
		return p == nullDevice || h.cfg.Exec.Shows(p) || holds.Check(caps.Request{
			Family: caps.FS, Mode: caps.Read,
			Name: p,
		}).Allow
	}
	unseen := written + " is nothing that the program is shown; name data in /usr/share, or have the operator grant " +
		"reading it (fs)"
	if !shown(written) {
		return unseen // and nothing is said of what lies there
	}
	leads, err := h.cfg.Exec.Leads(written)
	switch {
	case errors.Is(err, ErrNoPrograms):
		return written + " is in /proc, /sys, /dev or rlp's home, where the agent has files of its own; name data elsewhere"
	case errors.Is(err, ErrNotData):
		return written + " is a program or a device, or a folder that holds one, and what a variable names may be run; " +
			"name data alone"
	case errors.Is(err, fs.ErrNotExist):
		return "nothing is at " + written + "; name data that is there"
	case err != nil:
		return "nobody can tell what " + written + " leads to; name data elsewhere"
	}
	for _, p := range leads {
		if scope := h.mayWrite(p); scope != "" {
			return fmt.Sprintf("the agent may write %s, and so what the program finds by %s; name data elsewhere, or take it "+
				"out of fs_rw", scope, written)
		}
		if !shown(p) {
			return unseen
		}
	}
	return ""
}

// nullDevice holds nothing, whoever writes it.
const nullDevice = "/dev/null"

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
		if g.Family == caps.FS && (g.Modes.Has(caps.Write) || g.Modes.Has(caps.Delete)) &&
			(p == "/" || strings.HasPrefix(g.Scope, p+"/")) {
			return g.Scope
		}
	}
	return ""
}
