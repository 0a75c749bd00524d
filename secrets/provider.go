package secrets

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"runloop.dev/rlp/internal/base/ident"
)

// A Provider keeps the secrets of one tenant: no method takes a tenant, so none
// can name another's. What it cannot do is an [*UnavailableError].
type Provider interface {
	// Get returns the value of id, which the caller may clear. It wraps
	// [fs.ErrNotExist] when there is none.
	Get(ctx context.Context, id ID) ([]byte, error)
	// Put stores the value of id, in the place of an earlier one.
	Put(ctx context.Context, id ID, value []byte) error
	// Delete removes id; it wraps [fs.ErrNotExist] when there is none.
	Delete(ctx context.Context, id ID) error
	// List returns the ids that there are, sorted.
	List(ctx context.Context) ([]ID, error)
}

// Providers are the names that [Open] knows.
func Providers() []string { return []string{"age", "env", "keyring", "exec"} }

// Config says which provider is to be opened, and what it needs.
type Config struct {
	Provider string // "age", "env", "keyring" or "exec"
	Tenant   ident.Tenant
	// Dir is the folder of the tenant's secrets in the home: the vault of age,
	// the list of ids of keyring.
	Dir string
	// Env is the environment, "NAME=value", of env; exec takes the variables
	// from it that CommandEnv names.
	Env []string
	// Command is the program of exec and its arguments; {id}, {scope}, {name}
	// and {tenant} stand for the words of the secret.
	Command    []string
	CommandEnv []string
	Timeout    time.Duration // of Command; 0 is 10 seconds
}

// Open returns the provider that c names. It touches nothing: what is not there
// is noticed at the first use. An unknown provider is an error.
func Open(c Config) (Provider, error) {
	if c.Tenant.IsZero() {
		return nil, fmt.Errorf("opening the secrets: no tenant")
	}
	switch c.Provider {
	case "age":
		return &vault{dir: c.Dir, tenant: c.Tenant.String()}, nil
	case "env":
		return &environment{tenant: c.Tenant.String(), env: c.Env}, nil
	case "keyring":
		return &keychain{service: "runloop/" + c.Tenant.String(), dir: c.Dir}, nil
	case "exec":
		return newHelper(c)
	}
	return nil, fmt.Errorf("opening the secrets: unknown provider %q; there are %s", c.Provider, strings.Join(Providers(),
		", "))
}

func notThere(id ID) error { return fmt.Errorf("the secret %s: %w", id, fs.ErrNotExist) }

func sortIDs(ids []ID) []ID {
	slices.SortFunc(ids, func(a, b ID) int { return strings.Compare(a.String(), b.String()) })
	return ids
}
