package compose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/record/audit"
	storestate "runloop.dev/rlp/kb/state"
	"runloop.dev/rlp/launcher/run"
)

// StoreKnown is what is known, without opening it, of the store that the records
// of a launch will enter, and whether somebody has it open, who will find out more.
func (a *Runner) StoreKnown(c *Composition) (known storestate.Known, owned bool) {
	at := storestate.Of(c.Home.Dir(), c.Home.Root(), c.Home.Tenant())
	known, err := at.Look()
	if err != nil {
		return storestate.Known{Failed: err.Error()}, false
	}
	if known.Gone || known.None && SignedBefore(c.Home) { // it is not opened to know: that would make another
		return storestate.Known{Failed: at.Dir + ": there was a store, and there is none now"}, false
	}
	if at.Lost() {
		return storestate.Known{Failed: at.Dir +
			": there was a store, it was removed, and this one was begun in its place (rlp kb restore brings a backup back; " +
			"removing " + at.LostFile() + " says that you know)"}, false
	}
	if known.Changed {
		owned, err = at.Owned()
	}
	return known, owned && err == nil
}

// sayDamage has a run say that the store is damaged which its records would enter,
// or refuses it, as the operator has settled. Its records are safe in its journal:
// what is refused is to go on while nobody can read the log.
func (a *Runner) sayDamage(ctx context.Context, c *Composition, spec *run.Spec) {
	if c.Origin.from != nil {
		return // it was said of the run which launches this one
	}
	known, owned := a.StoreKnown(c)
	if known.Changed && !owned {
		known.Failed = a.openToKnow(ctx, c)
	}
	if known.Failed == "" {
		return
	}
	why := "the audit log cannot be read: " + known.Failed
	if c.Config.KB.OnDamage == "refuse" {
		spec.OpenJournal = func(audit.Head) (run.Journal, error) {
			return nil, errors.New(why + `; [kb] on_damage = "refuse" in config.toml has launches refused until it can`)
		}
		return
	}
	warning := fmt.Sprintf(`%s; what runs record stays in their journals until it can (rlp audit verify finds the damage; "A damaged store" in docs/kb.md says how a backup takes its place)`, why)
	spec.Warnings = append(spec.Warnings, warning)
}

// logKeys are the files of the key of a tenant's log.
var logKeys = []string{"audit.key", "audit.pub"}

// SignedBefore reports whether there is a key of the tenant's log, or a half of it.
func SignedBefore(h home.Home) bool {
	return slices.ContainsFunc(logKeys, func(name string) bool {
		_, err := os.Lstat(filepath.Join(h.Root(), name))
		return err == nil
	})
}
