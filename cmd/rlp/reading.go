package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/auditlog"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/knowledge"
	"runloop.dev/rlp/launcher/program"
)

// reader reads what this invocation names, as it is when this is called.
func (a *app) reader() *compose.Reader {
	return &compose.Reader{
		Env: a.env, HomeDir: a.homeFlag, HomeSet: a.homeSet, Tenant: a.tenant, HomeThere: a.homeThere,
		WorkingDir: a.getwd, Files: a.canonicalFile, Programs: a.programs, Say: a.say, Origin: a.origin(), StoreIn: a.madeUp,
	}
}

// runner launches for this invocation.
func (a *app) runner() *compose.Runner {
	return &compose.Runner{
		Reader: a.reader(), Kept: a.kept, Self: a.self, ModelHost: modelHostCommand,
		Verbose: a.watching(),
	}
}

// home opens the home of this invocation.
func (a *app) home() (home.Home, error) { return a.reader().Home() }

// settings opens the home and reads config.toml.
func (a *app) settings() (home.Home, config.Config, error) { return a.reader().Settings() }

// compose is [reader.compose] of this invocation's.
func (a *app) compose(path string, f compose.Flags) (*compose.Composition, error) {
	return a.reader().Compose(path, f)
}

// origin is who invoked this process, or had the daemon do so.
func (a *app) origin() compose.Origin {
	o := compose.Origin{Warn: a.warnOnce}
	if a.invoker != nil {
		o.Surface = compose.FromDaemon
	}
	return o
}

// programs are the file that this program is, and the one beside it that it starts
// to confine others, which nobody may put there either.
func (a *app) programs() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	list := []string{filepath.Join(filepath.Dir(self), program.ConfineFile)}
	if _, err := os.Lstat(self); err == nil {
		list = append(list, self)
	}
	return list
}

// withStore opens the store for one question.
func (a *app) withStore(
	ctx context.Context, f auditlog.Filter, ask func(context.Context, *kb.Store, kb.Filter) error,
) error {
	return auditlog.With(ctx, a.reader(), f, time.Now(), ask)
}

// withKB opens the store for one command of the operator's.
func (a *app) withKB(ctx context.Context, o kb.Origin, do func(*knowledge.Session) error) error {
	return knowledge.With(ctx, a.reader(), o, do)
}
