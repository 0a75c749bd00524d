package doctor

import (
	"context"
	"os"
	"os/exec"
	"time"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/lanes"
	"runloop.dev/rlp/launcher/lint"
)

// Here is the home dir on this machine, as r launches from it.
func Here(r *compose.Runner, dir string, now time.Time) Patient {
	return Patient{
		Home: dir, Tenant: r.Tenant, Env: r.Env, Now: now, UID: os.Geteuid(), Free: freeBytes,
		Lanes: func(ctx context.Context, names []string) (ask.LaneSurvey, error) { return lanes.Survey(ctx, r, names) },
		Secrets: func(ctx context.Context, h home.Home) (ids []string, err error) {
			cfg, err := config.Load(h.Config(), r.Env)
			if err != nil {
				return nil, err
			}
			p, err := r.SecretProvider(h, cfg)
			if err != nil {
				return nil, err
			}
			list, err := p.List(ctx)
			for _, id := range list {
				ids = append(ids, id.String())
			}
			return ids, err
		},
		Policies: func(h home.Home, cfg config.Config) []policy.Finding { return lint.Home(r.Reader, h, cfg) },
		Program: func(name string) error {
			_, err := exec.LookPath(name)
			return err
		},
	}
}
