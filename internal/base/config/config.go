// Package config reads config.toml: the operator's settings, once, at the edge.
//
// What is not known is an error, and so is what is known but asks for a control
// that this version does not have: a setting that is read and then not obeyed
// would promise what nobody keeps.
package config

import (
	"time"

	"runloop.dev/rlp/caps"
)

// A Config is config.toml after the environment was laid over it. The zero
// Config is not the default; [Default] is.
type Config struct {
	Security   Security
	Delegation Delegation
	KB         KB
	Audit      Audit
	Limits     caps.Limits // the operator's ceiling, a layer like others
	Model      Model
	Exec       Exec
	Serve      Serve
	Daemon     Daemon
	Log        Log
	MCP        map[string]MCPServer // by name
	Approvals  Approvals
}

// Approvals is [approvals]: whose yes counts where the operator wants to be asked.
type Approvals struct {
	// Approvers are clients of rlp mcp wrap, by the names that they give themselves.
	Approvers []string `path:"-"`
}

// Security is [security], [security.caps] and [security.secrets].
type Security struct {
	Profile                string `path:"-"` // named baseline grant; "" is none
	AllowUnsigned          bool
	ConfirmExternalActions bool
	PathProfile            string `path:"-"` // "strict" or "relaxed"
	ProfileAt, RunGrantAt  string `path:"-"` // where they were said, and a colon; "" where they are ""
	RunGrant               string `path:"-"` // profile that a request from outside starts from; "" is none
	Confirm                string `path:"-"` // "ask", "refuse" or "allow"
	Caps                   SecurityCaps
	SecretsProvider        string `path:"-"` // "age", "env", "keyring" or "exec"
	// SecretsCommand is the program of "exec" and its arguments; SecretsEnv are
	// the names of the variables that it is given.
	SecretsCommand []string `path:"security.secrets.command,secret arguments"`
	SecretsEnv     []string `path:"-"`
}

// SecurityCaps is [security.caps]. The audit switches govern what is stored;
// every decision is logged whatever they say.
type SecurityCaps struct {
	AuditOnDeny  bool
	AuditOnAllow bool
	FailOnEmpty  bool
	Untrusted    []string `path:"-"` // capability strings of what taints a run
	TrustedHosts []string `path:"-"` // hosts whose answers do not
}

// Delegation is [delegation]: what an agent that another one launches may keep.
type Delegation struct {
	CapabilityDefault string            `path:"-"` // "inherit" or "deny"
	Bindings          map[string]string `path:"-"` // agent to profile
}

// KB is [kb].
type KB struct {
	Domains []string `path:"-"` // beside the built-in ones
	// when records are on disk: "run", at its end; "effect", before each; "record", before each decided call
	Durability string `path:"-"`
	Encryption bool
	OnDamage   string `path:"-"` // what a launch does whose log's store is damaged: "warn" or "refuse"
}

// Model is [model]: the default model, who offers which, and what it costs.
type Model struct {
	Default   string `path:"-"`
	Providers []Provider
	Prices    map[string]Price `path:"-"` // by "provider:model", by model, or by the beginning of the former and "*"
	// Cache keeps the answers to requests that always get the same one, for the
	// rest of a run.
	Cache bool
}

// A Provider is one [[model.providers]].
type Provider struct {
	ID       string   `path:"-"`
	Kind     string   `path:"-"` // "openai", "anthropic" or "local"
	BaseURL  string   `path:"-"`
	SecretID string   `path:"-"`
	Models   []string `path:"-"` // what it offers, "*" at an end standing for the rest; none is all
}

// A Price is in US dollars a million tokens.
type Price struct {
	In, Out float64
}

// Daemon is [daemon]: the daemon of `rlp launch`.
type Daemon struct {
	Start string `path:"-"` // "never": by hand alone; "auto": by the first launch that finds none
	Idle  string `path:"-"` // how long it stays without a launch, as Go writes durations
}

// IdleTime is how long the helper stays without a launch.
func (d Daemon) IdleTime() time.Duration {
	t, err := time.ParseDuration(d.Idle)
	if err != nil {
		return 0
	}
	return t
}

// An MCPServer is one [mcp.servers.<name>]: a command or a URL, never both.
type MCPServer struct {
	Command []string `path:"mcp.servers.*.command"`
	URL     string   `path:"-"`
	Env     []string `path:"-"` // names of variables of rlp's own that the command gets
	// Secrets are variables of the command that have a secret's value; of a URL
	// there is at most one, without a name: the bearer token.
	Secrets []MCPSecret
}

// An MCPSecret is a secret that a server is given, and the variable that has it.
type MCPSecret struct {
	Variable string `path:"-"`
	ID       string `path:"-"`
}

// Default returns the settings of a home without config.toml.
func Default() Config {
	return Config{
		Security: Security{
			AllowUnsigned:   true,
			PathProfile:     "strict",
			Confirm:         "ask",
			Caps:            SecurityCaps{AuditOnDeny: true, AuditOnAllow: true},
			SecretsProvider: "age",
		},
		Delegation: Delegation{CapabilityDefault: "inherit"},
		KB:         KB{Durability: "effect", OnDamage: "warn"},
		Audit:      Audit{CheckpointEvery: 10_000},
		Model:      Model{Default: "local:echo"},
		Exec:       defaultExec(),
		Serve:      defaultServe(),
		Daemon:     Daemon{Start: "never", Idle: "10m"},
		Log:        Log{Days: 30, Bytes: 1 << 30},
	}
}
