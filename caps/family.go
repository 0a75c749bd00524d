package caps

import "slices"

// A Family is one kind of thing that an agent may touch.
type Family uint8

// The families, in the order of the contract.
const (
	FS Family = iota
	Net
	Time
	KBRead
	KBWrite
	Secrets
	Model
	Exec
	Env
	MCP
	Agents
	NumFamilies
)

// Tool is the axis of host calls by name, beside the families: by which call
// something may be done, whatever it touches. Its scopes are "*", a category
// "web:*" and a tool "web:net_http". Every base has all of it and no policy
// grants it, so it is no capability: only layers speak of it.
const (
	Tool         = NumFamilies
	numUniverses = NumFamilies + 1
)

// A Mode is one independent axis of a family: a grant in one mode says nothing
// about another. Each (family, mode) has a bitset of its own.
type Mode uint8

// Modes of FS. Every other family but Net and Secrets has only mode 0.
const (
	Read Mode = iota
	Write
	Delete
)

// Modes of Secrets: Get is asking for a handle (scope "id"), Use is putting the
// value in, towards a host (scope "id@host:port") or towards what is no host, a
// program (scope "id").
const (
	Get Mode = iota
	Use
)

// A ModeSet is a set of modes of one family, bit m for mode m.
type ModeSet uint32

// Modes makes the set of ms.
func Modes(ms ...Mode) ModeSet {
	var s ModeSet
	for _, m := range ms {
		s |= 1 << m
	}
	return s
}

// Has reports whether m is in s.
func (s ModeSet) Has(m Mode) bool { return s&(1<<m) != 0 }

// AllModes is every mode of f.
func AllModes(f Family) ModeSet {
	if f >= numUniverses {
		return 0
	}
	return 1<<families[f].modes - 1
}

// A shape is how the scopes of a family lie within each other.
type shape uint8

const (
	flatNames  shape = iota // "*" holds every name; names are disjoint
	pathTree                // "/" holds every path; a path holds what is below it, by component
	hostTree                // "*" holds "*.example.org:443" holds "a.example.org:443"
	modelTree               // "*" holds "openai:*" holds "openai:gpt-4"
	secretTree              // "*" holds "runloop/s/n" holds "runloop/s/n@host:port"
	onlyRoot                // "*" is all there is
)

// A family row says everything that differs between families: keys, words,
// audit names, denial codes and the shape of scopes all derive from it.
type family struct {
	key    string // in policy files
	domain string // in capability strings
	alias  string // a second domain word that deny lists accept
	modes  Mode   // how many
	shape  shape
	raw    bool // names that end in _raw are no part of "*"
	valid  func(name string) bool
	// actions are the words of capability strings, in the order of printing;
	// a scope's modes print as the fewest words that make them up.
	actions []action
	// audit is the name in records, by mode; the last one serves all further modes.
	audit  []string
	also   string // what records of programs call it
	denied Code

	category string // of its tools
	tier     Tier
	effects  []EffectSet // by mode; the last one serves all further modes
	flags    flag
	tools    []string // the host calls that are of this family, as records call them
	by       string   // the name of what programs do of it by themselves; "": nothing
}

type action struct {
	word  string
	modes ModeSet
}

var oneRead = []action{{"read", 1}}

// families is the one table. The capability words of Net are made and read in
// words_net.go, for they hold a scheme and methods as well.
var families = [numUniverses]family{
	FS: {
		key: "fs", domain: "fs", modes: 3, shape: pathTree, valid: isCleanPath,
		actions: []action{{"read", 1 << Read}, {"write", 1 << Write}, {"delete", 1 << Delete}},
		audit:   []string{"fs.read", "fs.write"}, denied: PathNotPermitted,
		category: "file", tier: LocalState, effects: []EffectSet{IORead, IOWrite}, flags: destructive | sandboxSafe,
		tools: []string{
			"path_open", "path_filestat_get", "path_filestat_set_times", "path_create_directory", "path_remove_directory",
			"path_unlink_file", "path_rename", "path_link", "path_symlink", "path_readlink",
		},
	},
	Net: {
		key: "net", domain: "network", alias: "net", modes: numNetModes, shape: hostTree, valid: isHostPort,
		audit: []string{"net.http"}, also: ConnectName, denied: HostNotPermitted,
		category: "web", tier: Network, effects: netEffects(), flags: networkFacing, tools: []string{"net_http"},
		by: "connect",
	},
	Time: {
		key: "time", domain: "time", modes: 1, shape: onlyRoot, actions: oneRead,
		valid: func(string) bool { return false },
		audit: []string{"time.now"}, denied: CapMissing,
		category: "time", tier: Pure, effects: []EffectSet{IORead}, flags: sandboxSafe, tools: []string{
			"clock_time_get",
			"time_now",
		},
	},
	KBRead: {
		key: "kb_read", domain: "kb", modes: 1, shape: flatNames, raw: true, valid: isDomain,
		actions: oneRead, audit: []string{"kb.read"}, denied: DomainNotPermitted,
		category: "memory", tier: LocalState, effects: []EffectSet{IORead}, flags: sandboxSafe, tools: []string{
			"kb_get",
			"kb_list", "kb_search",
		},
	},
	KBWrite: {
		key: "kb_write", domain: "kb", modes: 1, shape: flatNames, valid: isWritableDomain,
		actions: []action{{"write", 1}}, audit: []string{"kb.write"}, denied: DomainNotPermitted,
		category: "memory", tier: LocalState, effects: []EffectSet{IOWrite}, flags: destructive | sandboxSafe,
		tools: []string{"kb_put", "kb_cas", "kb_delete"},
	},
	Secrets: {
		key: "secrets", domain: "secrets", modes: 2, shape: secretTree, valid: isSecretScope,
		actions: []action{{"read", 1<<Get | 1<<Use}, {"get", 1 << Get}, {"use", 1 << Use}},
		audit:   []string{"secrets.get"}, denied: SecretNotPermitted,
		category: "secrets", tier: OperatorSensitive, effects: []EffectSet{IORead}, tools: []string{"secret_handle"},
	},
	Model: {
		key: "model", domain: "model", modes: 1, shape: modelTree, valid: isModel,
		actions: []action{{"use", 1}}, audit: []string{"model.use"}, denied: ModelNotPermitted,
		category: "model", tier: Network, effects: []EffectSet{IORead | IOWrite}, flags: networkFacing,
		tools: []string{"model_complete", "model_embed"},
	},
	Exec: {
		key: "exec", domain: "process", alias: "exec", modes: 1, shape: flatNames, valid: isProgram,
		actions: []action{{"exec", 1}}, audit: []string{"exec.spawn"}, denied: ProgramNotPermitted,
		category: "exec", tier: OperatorSensitive, effects: []EffectSet{IORead | IOWrite}, flags: destructive,
		tools: []string{"exec_run"}, by: "execve",
	},
	Env: {
		key: "env", domain: "env", modes: 1, shape: flatNames, valid: isEnvName,
		actions: oneRead, audit: []string{"env.read"}, denied: CapMissing,
		category: "env", tier: LocalState, effects: []EffectSet{IORead}, flags: sandboxSafe, tools: []string{"environ_get"},
	},
	MCP: {
		key: "mcp", domain: "mcp", modes: 1, shape: flatNames, valid: isPlainName,
		actions: []action{{"call", 1}}, audit: []string{"mcp.call"}, denied: ServerNotPermitted,
		category: "mcp", tier: OperatorSensitive, effects: []EffectSet{IORead | IOWrite}, flags: destructive | networkFacing,
		tools: []string{"mcp_call"},
	},
	Agents: {
		key: "agents", domain: "agents", modes: 1, shape: flatNames, valid: isAgentName,
		actions: []action{{"launch", 1}}, audit: []string{"agent.launch"}, denied: AgentNotPermitted,
		category: "multi_agent", tier: OperatorSensitive, effects: []EffectSet{Control}, flags: destructive,
		tools: []string{"agent_launch"},
	},
	Tool: { // in records a call of a tool is that of a server's: their words are a closed list
		key: "tools", domain: "tool", modes: 1, shape: modelTree, valid: isTool,
		actions: []action{{"call", 1}}, audit: []string{"mcp.call"}, denied: ToolHidden,
		category: "session", tier: Pure, effects: []EffectSet{Control}, flags: sandboxSafe, tools: []string{"turn_next"},
	},
}

// String is the key of f in policy files, such as "kb_read".
func (f Family) String() string {
	if f >= numUniverses {
		return "unknown"
	}
	return families[f].key
}

// FamilyOf is the family whose key in policy files is key.
func FamilyOf(key string) (Family, bool) {
	for f := range NumFamilies {
		if families[f].key == key {
			return f, true
		}
	}
	return 0, false
}

// AuditName is what records call a request of family f in mode m, such as
// "fs.write"; "" for what is no family.
func AuditName(f Family, m Mode) string {
	if f >= numUniverses {
		return ""
	}
	names := families[f].audit
	return names[min(int(m), len(names)-1)]
}

// ConnectName is what records call a connection of a program.
const ConnectName = "net.connect"

// AuditFamily is the family of what records call name.
func AuditFamily(name string) (Family, bool) {
	for f := range NumFamilies {
		if name != "" && (slices.Contains(families[f].audit, name) || families[f].also == name) {
			return f, true
		}
	}
	return 0, false
}

// AuditWord is the audit name, or the beginning of some, that a word means: the key
// of a family in policies, as "kb_read" is kb.read, or such a name itself. Where the
// word means none, ok is false and known has what may be written.
func AuditWord(word string) (name string, known []string, ok bool) {
	if f, is := FamilyOf(word); is {
		if f == FS { // its names go by mode
			return "fs", nil, true
		}
		return AuditName(f, 0), nil, true
	}
	known = []string{"caps", "caps.empty", "caps.extra", "kb"}
	for f := range NumFamilies {
		known = append(known, families[f].audit...)
		if also := families[f].also; also != "" {
			known = append(known, also)
		}
	}
	slices.Sort(known)
	if slices.Contains(known, word) {
		return word, nil, true
	}
	return "", known, false
}

// root is the widest scope of f.
func (f Family) root() string {
	if families[f].shape == pathTree {
		return "/"
	}
	return "*"
}

// BuiltinDomains are the domains of the knowledge base that there are without settings.
func BuiltinDomains() []string {
	return []string{"contacts", "artifacts", "events", "runs", "drafts", "notes", "accounts", "edges"}
}
