package hostcalls

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/internal/effect/model"
)

// A KBEntry is one key of a domain, as kb_list shows it.
type KBEntry struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
	Size     int    `json:"size"`
	Trusted  bool   `json:"-"` // as of a [KBValue]
}

// A KBValue is a stored value and what its store knows of it.
type KBValue struct {
	Bytes []byte
	// Plain says that the value is its own masked form. In doubt it is not.
	Plain bool
	// Trusted says that the operator wrote it, or a run that had taken in nothing
	// untrusted. In doubt it does not.
	Trusted bool
}

// A KBChange is what becomes of the value at a key.
type KBChange struct {
	Domain, Key string
	Value       []byte
	// Because is the untrusted input that the run had taken in before, "" for
	// none. The store keeps it with the value, and says to whoever reads that
	// whether it is to be trusted.
	Because string
}

// KB is what the kb calls need of a knowledge base. Implementations are bound
// to one tenant: no method takes a tenant, so none can name another's. Errors
// that a guest should see are a [*Fail]; any other is answered as io.
type KB interface {
	Get(ctx context.Context, domain, key string) (KBValue, error)
	Put(ctx context.Context, c KBChange) (revision uint64, err error)
	// CAS writes only if the stored revision is this one (0: absent).
	CAS(ctx context.Context, c KBChange, revision uint64) (uint64, error)
	Delete(ctx context.Context, c KBChange) error
	List(ctx context.Context, domain, prefix string) ([]KBEntry, error)
	// Search returns the values that suit a text best.
	Search(ctx context.Context, q KBQuery) ([]KBHit, error)
}

// A KBQuery is what a run searches for.
type KBQuery struct {
	Domain, Text string
	K            int // answers at most
	// Raw looks at what is stored; without it masked values alone are looked at,
	// and shown.
	Raw bool
	// Clean takes the values of the run's secrets out of a text. A snippet is cut
	// from what it leaves, since the half of a value is not found any more, and
	// what is found by the words of a value alone is no answer. nil: the run has
	// no secrets.
	Clean func(text []byte) []byte
}

// A KBHit is one answer of kb_search, best first.
type KBHit struct {
	Key     string  `json:"key"`
	Score   float64 `json:"score"`
	Snippet string  `json:"snippet"`
	Trusted bool    `json:"-"` // as of a [KBValue]
}

// Masks put masks in the place of personal data in what a run may not see raw.
// A mask says what kind of datum it stands for and is the same for the same
// datum, wherever in the tenant's domains that occurs.
type Masks interface {
	// Mask is value masked as one of the domain; value itself when there is
	// nothing to mask.
	Mask(domain string, value []byte) ([]byte, error)
	// MaskKey is key masked; Marks finds a mask in it if it is not key itself.
	MaskKey(domain, key string) (string, error)
	// Marks are the masks in text.
	Marks(text []byte) []string
}

// HTTP sends what net_http was permitted to. It knows addresses; which hosts
// may be reached is the gate's word.
type HTTP interface {
	// Vet reports why host, a canonical host:port, must not be reached whatever
	// it resolves to; nil for a name. named says that a grant has exactly this
	// host in it, which is what an address that is not public needs.
	Vet(host string, named bool) error
	// Send sends one request and returns its answer, following no redirect; it
	// decompresses what comes as gzip when the request says that it takes gzip. An
	// error with a method AddressNotPermitted() is a refusal for the address
	// that the host has; no error holds anything of request or answer. Where
	// req.TLS is set, nothing is sent over a connection of a lower version.
	Send(req *http.Request, named bool) (*http.Response, error)
}

// Secrets are the secrets of one run. The guest only ever holds handles.
type Secrets interface {
	// Handle is the opaque name, rlsec_..., of the secret id in this run:
	// fs.ErrNotExist when there is no such secret, errors.ErrUnsupported when
	// what keeps them is not available.
	Handle(ctx context.Context, id string) (string, error)
	// Named are the words of text that begin like handles, each once.
	Named(text string) []string
	// Fill puts values in the place of the handles in text, each after admit has
	// permitted its id: fs.ErrNotExist when what begins like a handle is none of
	// this run's.
	Fill(text string, admit func(id string) error) (string, error)
	// Sending notes that the value of the secret id is about to be sent to host, a
	// canonical host:port: what is not noted must not be sent.
	Sending(id, host string) error
	// Hear is told of a host that has answered, before anybody looks at what it
	// says: the values of ids and of what was sent there before are looked for from
	// then on. What it cannot look for it says once.
	Hear(ctx context.Context, host string, ids []string) error
	// Knows reports whether there is any value to look for.
	Knows() bool
	// Scrub puts a mark in the place of every value of this run in p, however
	// it is encoded, and tells replaced whose it was; it is p itself when there
	// is none.
	Scrub(p []byte, replaced func(id string)) []byte
	// Stream is Scrub for a text that comes in pieces: the function gives what
	// can be passed on, and the rest when end is set.
	Stream(replaced func(id string)) func(p []byte, end bool) []byte
}

// Model answers model_complete and model_embed for one run.
type Model interface {
	// Bound lowers what all calls of the run may cost together.
	Bound(l model.Limits)
	// Prepare puts the name that is really used into r, and says why r would not
	// be asked for now; nil if it would be. Nothing is asked or reserved by it.
	Prepare(r model.Request) *model.Refusal
	// Complete and Embed ask. Errors are a [*model.Refusal] or a [*model.Failure].
	Complete(ctx context.Context, r *model.CompleteRequest) (*model.Answer, error)
	Embed(ctx context.Context, r *model.EmbedRequest) (*model.Embeddings, error)
}

// A Program is what a path leads to.
type Program struct {
	// File is the canonical path of the file that is executed: what is judged.
	File string
	// Name is what the program is told that it is called: File, or the link by
	// which the policy grants it. "" is a link that no policy names, to a file
	// that is granted by another: some programs do what their name says.
	Name string
	// Via are the paths whose replacement would replace the program, File too.
	Via []string
}

// A Command is one program to start; nothing in it is a handle any more.
type Command struct {
	File    string // a [Program.File]
	Argv    []string
	Env     []string // NAME=value, beside what the lane says of the run
	Dir     string   // in the working folder; "" is that folder
	Stdin   []byte
	Timeout time.Duration
	// MaxOutput is what is kept of each stream, in bytes.
	MaxOutput int
	// Holds is what the run holds now: programs get no more of its files.
	Holds caps.Set
}

// Ended is how a program ended.
type Ended struct {
	ExitCode       int // 128 and the signal, where one ended it
	TimedOut       bool
	OutOfMemory    bool // it, or something that it started, was ended for want of memory
	Stdout, Stderr []byte
	// StdoutCut and StderrCut say that there was more than MaxOutput.
	StdoutCut, StderrCut bool
	// StdoutMax and StderrMax are what the guest gets; 0 is [MaxExecOutput].
	StdoutMax, StderrMax int
}

// Exec starts programs, one at a time, in the working folder of the run.
type Exec interface {
	// Find says what is started when a guest names path, absolute and clean.
	// Errors are a [*Fail], path is judged all the same; or [ErrNoPrograms].
	Find(path string) (Program, error)
	// Leads are the paths on the way that a program takes by path, absolute and
	// clean, to data and all that lies in it, each link by its real name:
	// [ErrNotData] where there is anything else, fs.ErrNotExist where there is
	// nothing; or [ErrNoPrograms].
	Leads(path string) ([]string, error)
	// Shows reports whether programs find at path what lies there on the machine,
	// whatever the run holds.
	Shows(path string) bool
	// Run runs the program to its end. Errors that a guest should see are a
	// [*Fail]; the end of ctx is ctx's.
	Run(ctx context.Context, c *Command) (*Ended, error)
	// SeesAll reports whether programs see all of the operator's files, whatever
	// the run holds.
	SeesAll() bool
}

// An MCPServer is one server, for one run. Errors that a guest should see are a
// [*Fail]; what the server itself says is an [*MCPError].
type MCPServer interface {
	// Tools are what the server offers, which may have to be started and asked
	// for it; [ErrServerChanged] when that is not what the operator knows of it,
	// from then on to the end of the run.
	Tools(ctx context.Context) (MCPTools, error)
	// Call calls a tool with a JSON object and returns one.
	Call(ctx context.Context, tool string, arguments json.RawMessage) (json.RawMessage, error)
}

// An MCPTool is what a server says of a tool.
type MCPTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// MCPTools are the tools of a server, by name.
type MCPTools struct {
	List []MCPTool
	// Pinned is the digest by which the server is known from here on, when it was
	// not known before.
	Pinned string
}

// MCP is the operator's servers of tools.
type MCP interface {
	// Server is the one of that name; nil where none is configured.
	Server(name string) MCPServer
}

// A ToolPart is a text, or a secret by its id.
type ToolPart struct{ Text, Secret string }

// A ToolField is a header or variable, made of parts.
type ToolField struct {
	Name  string
	Parts []ToolPart
}

// A ToolProgram is a program with fixed arguments: the arguments of a call are
// its stdin, as JSON.
type ToolProgram struct {
	Command string // absolute
	File    string // what the command leads to, as policies know it; "": the command
	Args    []string
	Env     []ToolField
	Timeout time.Duration // 0: the usual
}

// A ToolRequest is a request to a fixed place: the arguments of a call are its
// body, or its query where the method has no body.
type ToolRequest struct {
	Method, URL string
	Headers     []ToolField
	Timeout     time.Duration
}

// A Tool is one that the bundle attaches. It has no way of its own: a program is
// started as exec_run starts it, a request is sent as net_http sends it, after
// everything else that the tool needs was admitted.
type Tool struct {
	ID          string
	Description string
	InputSchema json.RawMessage // for the guest

	// Needs are admitted before each call, in this order and each with all that
	// is within it; the program or the request itself comes last, and is not
	// among them.
	Needs []caps.Request
	// Later are asked for by the very start or sending: variables, and the secrets
	// that are put in. A tool that lacks one of them is not attached either.
	Later   []caps.Request
	Program *ToolProgram // one of the two
	Request *ToolRequest

	// Input and Result say what is wrong with the arguments of a call and with
	// what came of it, and give it back in one spelling.
	Input, Result func(text []byte) ([]byte, error)
	// Tokens and MicroUSD bound all calls of a run together; negative: no bound.
	Tokens, MicroUSD int64
	// Confirm has a person asked before each call.
	Confirm bool
	Tags    []string // for reports
	// Files is what the program gets of the run's files; nil: all that it has.
	Files *caps.Layer
}

// A Question is what a person is asked before something is done for an agent.
type Question struct {
	Tool        string // what the agent uses
	Description string // in the bundle's words
	Target      string // what it reaches
	Arguments   string
}

// Confirm asks a person, or answers for them as they said beforehand. how says
// which it was, for records: "by the operator at the terminal".
type Confirm func(ctx context.Context, q Question) (yes bool, how string)

// A Child is one line of a report about the runs that a run launched.
type Child struct {
	RunID   string `json:"run_id"`
	Agent   string `json:"agent"`
	Outcome string `json:"outcome"`
}

// A Delegation is one run that another one asks for, and what the asking run
// has to give.
type Delegation struct {
	Agent       string
	Input       []byte // JSON; nil: none
	Allow, Deny []string
	Limits      map[string]int64

	// Within bounds the launched run: what the asking run holds at this moment,
	// and what is left of its limits.
	Within *caps.Layer
	// Above is the budget of the asking run.
	Above *budget.Budget
	// Tainted is the input that marked the asking run; "" if none has.
	Tainted string
}

// Delegated is what came of a delegation.
type Delegated struct {
	// Report is the JSON document that the guest gets, without secrets of the
	// launched run; Less is the same without anything that the agent said.
	Report, Less   []byte
	RunID, Outcome string
	// Why says why the run was refused, for the record; Warnings are what the
	// operator must know of how it was bound. Either may be empty.
	Why      string
	Warnings []string
	// Ran says that the agent executed at least one instruction.
	Ran bool
	// Calls and Instructions are what it used of hostcalls_max and of cpu_fuel,
	// LeaseUses of its leases.
	Calls, Instructions int64
	LeaseUses           map[caps.Grant]int64
}

// Agents launch other agents on behalf of a run, one at a time.
type Agents interface {
	// Launch runs an installed agent to its end. What went wrong with it is in
	// what it returns; an error says that there is no such agent, or that it was
	// asked in a way that makes no sense (a [*Fail]), or is ctx's.
	Launch(ctx context.Context, d *Delegation) (*Delegated, error)
}

// Left is what is left to a run of its wall-clock time, and of its fuel in units
// of cpu_fuel, where that is bounded.
type Left = func() (wall time.Duration, fuel int64, bounded bool)

// Sources say which inputs are untrusted, beside those that always are: what
// MCP servers and other agents answer, and stored values that are labelled so.
// The zero Sources trust no host, and every file, program and launch input.
//
// The first thing of an untrusted source marks the run, before the guest sees a
// byte of it; from then on the run holds no more than its floor leaves, to its
// end: what a guest has read, it knows.
type Sources struct {
	// Untrusted holds the files, programs and domains that mark a run.
	Untrusted caps.Set
	// Trusted holds the hosts whose answers do not.
	Trusted caps.Set
	// Input says that what the agent is given to do marks it as well.
	Input bool
}

// Turns ends a guest's turn and begins its next one. What narrows the run may
// change there and nowhere else.
type Turns interface {
	// Next returns the next input, at most [MaxInput] bytes. An error that wraps
	// [io.EOF] says that there is none; a [*Fail] is for the guest; any other is
	// answered as io.
	Next(ctx context.Context) ([]byte, error)
}

// An Added is a host function of the embedding program. The zero Added is none.
type Added struct{ def }
