package kb

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"runloop.dev/rlp/kb/log"
	"runloop.dev/rlp/kb/state"
	"runloop.dev/rlp/kb/values"
	"runloop.dev/rlp/kb/wire"
)

// DefaultTenant is the tenant whose files lie in the home itself.
const DefaultTenant = "default"

// Options says which store [Open] opens.
type Options struct {
	Home    string   // the home, an absolute path; it is made if it is not there
	Tenant  string   // "" is DefaultTenant
	Domains []string // added to BuiltinDomains

	// Mask returns a value as it is shown to who may not see it raw, and
	// MaskVersion names the rules that it follows: when they change the index of
	// masked words is made again. Mask must give equal values equal masks and may
	// be called by several goroutines; nil from it means that it cannot mask now,
	// and refuses what needs it. A nil Mask: nothing is masked.
	Mask        func(domain string, value []byte) []byte
	MaskVersion string

	// Seal signs a checkpoint: the note says that the log has size records and
	// root is the root of their tree. SealMark does the same with lines behind the
	// root, by which it is signed what was pruned. nil: there are no checkpoints,
	// and nothing can be pruned. Both may be called by several goroutines.
	Seal     func(size uint64, root [32]byte) (note []byte, err error)
	SealMark func(size uint64, root [32]byte, lines []string) (note []byte, err error)
	// Signed reports whether there is a key that checkpoints were signed with. nil:
	// nobody can tell.
	Signed func() bool
	// CheckpointEvery is how many records there are at most between two
	// checkpoints; 0 means 10,000.
	CheckpointEvery int

	// Wait is how long an owner that does not answer is waited for; 0 means 10 s.
	Wait time.Duration
	// Now is the clock of what is stored; nil is the system's.
	Now func() time.Time
}

// BuiltinDomains returns the domains that every store has.
func BuiltinDomains() []string {
	return []string{"accounts", "artifacts", "contacts", "drafts", "edges", "events", "notes", "runs"}
}

// A layout is where the files of one tenant are.
type layout struct {
	root, kb, journal string // of the tenant
	run               string // of the home: sockets and locks
	lock, socket      string
	place             state.Place
}

// withDefaults checks o and fills in what was left out.
func (o Options) withDefaults() (Options, error) {
	if o.Tenant == "" {
		o.Tenant = DefaultTenant
	}
	if o.Wait == 0 {
		o.Wait = 10 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if !filepath.IsAbs(o.Home) {
		return o, wire.Invalidf("the home %q is not an absolute path", o.Home)
	}
	if !validTenant(o.Tenant) {
		return o, wire.Invalidf("the tenant %q is not 1 to 64 letters, digits, _ or -", o.Tenant)
	}
	domains := BuiltinDomains()
	for _, d := range o.Domains {
		if !values.ValidDomain(d) {
			return o, wire.Invalidf("the domain %q is not a lower-case name of at most 64 letters, digits, _ or -, or it ends "+
				"in _raw", d)
		}
		domains = append(domains, d)
	}
	slices.Sort(domains)
	o.Domains = slices.Compact(domains)
	return o, nil
}

// JournalDir returns the directory of a tenant's journals; "" is DefaultTenant.
func JournalDir(home, tenant string) (string, error) {
	o, err := Options{Home: home, Tenant: tenant}.withDefaults()
	if err != nil {
		return "", err
	}
	return o.layout().journal, nil
}

// log are the options of the store's log.
func (o *Options) log(journal string) log.Options {
	return log.Options{
		Tenant: o.Tenant, Journal: journal, Seal: o.Seal, SealMark: o.SealMark, Signed: o.Signed,
		CheckpointEvery: o.CheckpointEvery, Now: o.Now,
	}
}

// values are the options of its values.
func (o *Options) values() *values.Options {
	return &values.Options{Tenant: o.Tenant, Domains: o.Domains, Mask: o.Mask, MaskVersion: o.MaskVersion, Now: o.Now}
}

func (o Options) layout() layout {
	root := o.Home
	if o.Tenant != DefaultTenant {
		root = filepath.Join(o.Home, "tenants", o.Tenant)
	}
	at := state.Of(o.Home, root, o.Tenant)
	return layout{
		root: root, kb: at.Dir, journal: filepath.Join(root, "journal"),
		run: at.Run, lock: at.Lock, socket: at.Socket, place: at,
	}
}

func validTenant(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	return s != "" && len(s) <= 64 && strings.Trim(s, letters) == ""
}
