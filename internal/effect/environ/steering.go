// Package environ knows environment variables of programs: which make them load, run or
// trust something else, and what programs take others for.
package environ

import (
	"slices"
	"strings"
)

// Steers reports whether a variable makes programs load, run or trust
// something else, whatever grants it and in whatever case it is written. Those
// that the host sets are among them.
func Steers(name string) bool {
	name = strings.ToUpper(name)
	return FormOf(name) == nil && (slices.Contains(steeringVariables[:], name) ||
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
