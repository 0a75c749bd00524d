package policy

import (
	"path"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/base/tomlfile"
)

// The programs that do what their input or their arguments say, by what they do.
// No list can be whole: a program that is not here may do so, too.
var (
	interpreters = strings.Fields(`sh bash dash ash ksh mksh zsh fish csh tcsh rbash pwsh busybox toybox
		python pypy perl ruby irb node nodejs deno bun php lua luajit tclsh wish expect guile rscript r julia
		java jshell scala groovy erl elixir ghci runghc ocaml racket gdb lldb
		awk gawk mawk nawk sed ed ex vi vim nvim emacs m4 sqlite3 psql mysql`)
	starters = strings.Fields(`env xargs parallel find nice ionice nohup timeout time setsid setarch stdbuf unshare nsenter chroot
		setpriv sudo su doas runuser systemd-run script flock watch strace ltrace entr
		ssh scp sftp rsync tar zip unzip less more man make gmake cmake ninja meson bazel
		npm npx pnpm yarn pip pipx uv uvx poetry cargo go gem bundle mvn gradle docker podman kubectl crontab at ld.so`)
	checkouts = []string{"git", "hg", "svn"}
)

// steered is what a program does with what it is given beside working on it; "":
// nothing that is known.
func steered(program string) string {
	name := strings.ToLower(path.Base(program))
	name = strings.TrimRight(strings.TrimSuffix(name, ".exe"), "0123456789.-")
	switch {
	case slices.Contains(interpreters, name):
		return "runs code that it is given"
	case slices.Contains(starters, name):
		return "starts other programs"
	case slices.Contains(checkouts, name):
		return "starts hooks and programs that the files of a checkout name"
	}
	return ""
}

// orders tells, in one finding, which programs of a list of exec take orders and
// not only data: by one of them the agent can have any code run.
func orders(r *report, v *tomlfile.Value) {
	var told []string
	for i := range v.Items {
		if how := steered(v.Items[i].Str); how != "" {
			told = append(told, v.Items[i].Str+" "+how)
		}
	}
	if len(told) > 0 {
		r.add(v.Pos, CodeExecOrders, `grant programs that only work on data, such as "/usr/bin/grep"; these are a grant of all that a program may do in its lane`,
			"%s", strings.Join(told, "; "))
	}
}
