package archtest

// A room is one package of the drawing. Imports go from a higher level to a
// lower one, and only through the doors that the drawing has.
type room struct {
	level int
	doors doors
}

// doors are what a room may import of the project, each with the reason.
type doors map[string]string

// rooms is the drawing. A package that is not in it does not belong to the
// house; "agents/*" stands for each folder in agents.
var rooms = map[string]room{
	"cmd/rlp": {8, doors{
		"internal/printable":       "what agents say does not steer the terminal",
		"internal/access":          "proves who asks of the service, and keeps their tokens",
		"internal/api":             "serves HTTP",
		"internal/client":          "asks a service for a launch, or for what it shows",
		"internal/console":         "serves pages",
		"internal/mcpserver":       "serves agents as tools",
		"internal/service":         "is its host",
		"internal/telemetry":       "tells collectors what runs do",
		"internal/top":             "shows runs on a terminal",
		"bundles":                  "opens what it is told to launch",
		"caps":                     "prints grants and changes, explains requests",
		"caps/policy":              "reads overrides, flags and what lint looks at",
		"hostcalls":                "gives the calls their store",
		"hostcalls/gate":           "opens the gate of a run",
		"internal/abi":             "joins the functions of calls and WASI",
		"internal/audit":           "tees and prints records",
		"internal/companion":       "hands what is not for the small program to the whole one",
		"internal/config":          "reads the settings once",
		"internal/early":           "asks the resident helper before anything else",
		"internal/evidence":        "signs, proves and publishes what the log is",
		"internal/guest":           "chooses the engine and its cache, and is its compiling child",
		"internal/home":            "finds the operator's files",
		"internal/ident":           "parses names from the command line",
		"internal/egress":          "gives the calls their way out",
		"internal/export":          "writes records for other programs",
		"internal/otlp":            "reads the headers that a collector is sent",
		"internal/foresight":       "prints what it learns of records",
		"internal/jail":            "gives a run its files",
		"internal/lane":            "gives the calls a place where programs run, or is what confines one",
		"internal/lane/probe":      "tries lanes, from outside and from inside",
		"internal/mcpclient":       "speaks with servers of tools, as it is told where they are",
		"internal/model":           "gives the calls their models",
		"internal/model/providers": "is the process that speaks to providers",
		"internal/model/remote":    "starts that process, or is it",
		"internal/pii":             "masks what leaves the store",
		"internal/resident":        "serves launches of others, or asks who does",
		"internal/schema":          "checks what goes to attached tools and comes back",
		"internal/tomlfile":        "prints the place of what is wrong in a file",
		"internal/wasi":            "gives a run its clocks and streams",
		"kb":                       "picks the store",
		"kb/journal":               "opens the journal that a run appends to",
		"kb/source":                "reads what is imported",
		"launcher":                 "plans and launches",
		"secrets":                  "picks the provider",
	}},
	"internal/service": {6, doors{
		"caps":           "what narrows a caller is layers",
		"internal/audit": "records are what callers follow",
		"internal/guard": "a run that breaks harms no other",
		"internal/ident": "names runs",
		"kb":             "the log is a store's",
		"launcher":       "what came of a run is its report",
	}},
	"internal/access": {7, doors{
		"caps":              "a token's grant is a layer",
		"internal/home":     "a token's record is a private file",
		"internal/ident":    "a token belongs to a tenant",
		"internal/service":  "makes its callers",
		"internal/tomlfile": "reads a token's record",
	}},
	"internal/api": {7, doors{
		"caps":             "what records call families",
		"internal/audit":   "prints records as they are exported",
		"internal/guard":   "a stream that breaks ends no other",
		"internal/schema":  "bodies have one reader",
		"internal/service": "is its HTTP",
		"kb":               "filters of the log",
		"launcher":         "prints reports",
	}},
	"internal/console": {7, doors{
		"internal/printable": "shows what is hidden",
		"caps":               "names of families",
		"internal/audit":     "shows records",
		"internal/service":   "shows what it holds",
		"kb":                 "filters of the log",
		"launcher":           "shows reports",
	}},
	"internal/mcpserver": {7, doors{
		"internal/printable": "models are told what can be seen",
		"caps":               "asks about what a record was about",
		"internal/audit":     "shows records",
		"internal/guard":     "a message that breaks ends no session",
		"internal/schema":    "schemas of agents are a stranger's, and arguments are held against them",
		"internal/service":   "agents are its tools",
		"kb":                 "filters of the log",
		"launcher":           "answers with reports",
	}},
	"internal/telemetry": {7, doors{
		"internal/audit":   "counts decisions",
		"internal/otlp":    "says it to collectors",
		"internal/service": "watches it",
		"launcher":         "outcomes are labels",
	}},
	"internal/client": {0, nil},
	"internal/top": {1, doors{
		"internal/client":    "asks the service",
		"internal/printable": "what agents say does not steer the terminal",
	}},
	"launcher": {5, doors{
		"internal/printable": "the marker is one line, and no guest writes one like it",
		"bundles":            "a plan begins with a verified bundle",
		"caps":               "base, layers, effective and limits",
		"caps/policy":        "entries and layers of the documents in the bundle",
		"hostcalls":          "links the table of calls",
		"hostcalls/gate":     "one gate a run",
		"internal/abi":       "hands functions to the engine",
		"internal/audit":     "records start and end through a sink that it is given",
		"internal/config":    "the operator's ceiling on limits",
		"internal/guard":     "a module that breaks the compiler ends its own launch",
		"internal/guest":     "runs the guest",
		"internal/ident":     "names runs, agents, tenants",
		"internal/jail":      "the guest's files",
		"internal/tomlfile":  "places of findings",
		"internal/wasi":      "the guest's system interface",
	}},
	"internal/guest": {4, doors{
		"internal/printable": "what a module says is one line",
		"internal/abi":       "links functions that know no engine",
		"internal/meter":     "what it compiles meters itself",
	}},
	"internal/jail": {4, doors{
		"caps":          "scopes of the grants that it pins, requests to judge",
		"internal/wasi": "is its FS",
	}},
	"hostcalls": {3, doors{
		"internal/printable": "causes are one line",
		"internal/model":     "the words of a request to a model, read once and judged",
		"caps":               "turns arguments into requests",
		"hostcalls/gate":     "the one door",
		"internal/abi":       "is a table of functions",
		"internal/audit":     "records what came of a call",
	}},
	"internal/wasi/wasitest": {4, doors{
		"internal/abi":  "calls functions as an engine would",
		"internal/wasi": "is an FS in memory",
	}},
	"internal/wasi": {3, doors{
		"internal/abi": "is a table of functions",
	}},
	"hostcalls/gate": {2, doors{
		"caps":           "decides by the set that holds now",
		"internal/audit": "records before it answers",
	}},
	"bundles": {2, doors{
		"internal/blake3":   "digests that a manifest names",
		"caps":              "what a tool needs is written as capabilities",
		"internal/ident":    "an agent's name is checked where it is read",
		"internal/tomlfile": "reads manifest.toml",
	}},
	"kb/kbtest": {4, doors{
		"hostcalls":      "is the conformance suite of the store that the calls need",
		"internal/audit": "makes records to keep",
		"internal/ident": "opens a store for a tenant",
		"kb":             "opens a store of its own for each test",
	}},
	"kb": {3, doors{
		"internal/audit": "keeps records",
		"internal/ident": "a view is bound to a tenant",
		"kb/journal":     "takes in what runs appended",
		"kb/wire":        "serves other processes, or asks the one that serves",
	}},
	"kb/journal": {2, doors{
		"internal/home":   "its key is a private file",
		"internal/blake3": "sums of frames, the keyed digest of arguments",
		"internal/audit":  "is a Sink",
	}},
	"kb/source": {1, nil},
	"kb/wire": {2, doors{
		"internal/audit": "carries records",
		"internal/ident": "says for which tenant",
	}},
	"caps/policy": {1, doors{
		"caps":              "makes entries and layers",
		"internal/tomlfile": "reads with exact keys and places",
	}},
	"internal/config": {2, doors{
		"caps":              "the ceiling is limits",
		"caps/policy":       "limits are spelled alike everywhere",
		"internal/tomlfile": "reads config.toml",
	}},
	"internal/export": {2, doors{
		"internal/audit": "records are what it renders",
		"internal/otlp":  "says it to collectors",
	}},
	"internal/foresight": {1, doors{
		"internal/printable": "agents chose what drafts quote",
		"caps":               "asks again what records say, and writes grants of it",
	}},
	"internal/egress": {2, doors{
		"caps": "hosts and ports are canonical on both sides",
	}},
	"internal/model/providers": {3, doors{
		"internal/model": "is its providers",
	}},
	"internal/model/remote": {3, doors{
		"internal/model": "carries its requests and answers",
	}},
	"internal/otlp":              {0, nil},
	"internal/mcpclient":         {0, doors{"internal/guard": "a server at which its SDK breaks ends a call"}},
	"internal/mcpclient/mcptest": {0, nil},
	"internal/model":             {2, nil},
	"internal/model/modeltest":   {0, nil},
	"internal/guest/hostiletest": {0, nil},
	"internal/lane":              {1, doors{"internal/guard": "a lane that breaks ends its program"}},
	"internal/lane/confined": {2, doors{
		"internal/lane": "is the part of it that confines",
	}},
	"internal/lane/probe": {2, doors{
		"internal/lane": "opens the lanes that it tries",
	}},
	"internal/meter":  {0, nil},
	"internal/schema": {0, nil},
	"internal/pii":    {0, nil},
	"secrets": {1, doors{
		"caps":           "a secret's id has one form",
		"internal/guard": "a keyring that breaks its client ends a look-up",
		"internal/home":  "what it keeps are private files",
		"internal/ident": "a secret belongs to a tenant",
	}},
	"internal/audit":          {1, nil},
	"internal/evidence":       {1, doors{"internal/home": "the key of the log is a private file"}},
	"caps":                    {0, doors{"internal/blake3": "the digest of a set"}},
	"internal/blake3":         {-1, nil},
	"internal/guard":          {-1, nil},
	"internal/printable":      {-1, nil},
	"internal/abi":            {0, nil},
	"internal/companion":      {0, nil},
	"internal/companion/pack": {8, doors{"internal/companion": "writes what the small program finds"}},
	"internal/home":           {0, nil},
	"internal/resident":       {0, nil},
	"internal/early": {1, doors{
		"internal/home":     "finds the socket",
		"internal/resident": "asks whoever serves",
	}},
	"internal/ident":    {0, nil},
	"internal/tomlfile": {0, nil},

	// The guest's half. The host never imports it, nor it the host.
	"agents/*": {3, doors{
		"agents/sdk":          "the guest half of the interface",
		"agents/sdk/jsonlite": "small JSON, where encoding/json is most of a module",
	}},
	"agents/sdk/sdktest": {2, doors{
		"agents/sdk":          "stands in for the host",
		"agents/sdk/jsonlite": "answers as the host does",
	}},
	"agents/sdk":          {1, doors{"agents/sdk/jsonlite": "small JSON, where encoding/json is most of a module"}},
	"agents/sdk/jsonlite": {0, nil},

	// What judges the house is not part of it.
	"internal/archtest":    {0, nil},
	"internal/conformance": {0, nil},
	"internal/demo":        {0, nil},
	"internal/dist":        {0, nil},
}

// toBuild are rooms that are drawn and have no package yet.
var toBuild = map[string]string{}

// testDoors are what the tests of a room may import beyond the room's own
// doors. Tests stand outside the levels, never outside the drawing.
var testDoors = map[string]doors{
	"internal/api": {
		"caps":            "codes of violations",
		"internal/access": "what it answers is held against the document",
	},
	"cmd/rlp": {
		"internal/model/modeltest":   "scripts ask servers on loopback",
		"internal/guest/hostiletest": "modules that attack the launch",
		"internal/mcpclient/mcptest": "scripts ask servers of tools, hostile ones too",
	},
	"internal/mcpclient": {"internal/mcpclient/mcptest": "servers of tools, hostile ones too"},
	"internal/model/providers": {
		"internal/model/modeltest": "providers are servers on loopback",
		"internal/model/remote":    "what the process between costs is measured",
	},
	"internal/console": {"kb/journal": "a log of very many runs, as launches leave it"},
	"agents/*":         {"agents/sdk/sdktest": "an agent is tested against a host that is not there"},
	"agents/sdk":       {"agents/sdk/sdktest": "the calls are tested against a host that is not there"},
	"kb/journal":       {"kb/kbtest": "a disk that loses power"},
	"kb": {
		"kb/kbtest":      "every store passes one suite",
		"caps":           "a get is measured from inside a guest",
		"hostcalls":      "the same",
		"hostcalls/gate": "the same",
		"internal/guest": "the same, on the engine",
		"internal/pii":   "the same, masked",
	},
	"hostcalls": {
		"internal/guest":  "the ratio to an empty call is measured on the engine",
		"kb/journal":      "a recorded call is measured with the journal that runs use",
		"secrets":         "handles and values are those that runs have",
		"internal/ident":  "the secrets of a tenant",
		"internal/egress": "attacks on net_http go through the whole of it",
		"caps/policy":     "policies are written as operators write them",
	},
	"internal/jail": {
		"internal/wasi/wasitest": "every FS passes one suite",
		"hostcalls/gate":         "a checked file operation is measured from inside a guest",
		"internal/audit":         "the same",
		"internal/guest":         "the same",
		"kb/journal":             "the same, with the journal that runs use",
	},
	"internal/wasi": {
		"internal/guest":         "real guests call it",
		"internal/wasi/wasitest": "an FS in memory",
	},
	"internal/guest": {
		"internal/guest/hostiletest": "modules that attack it",
		"internal/wasi":              "real guests need a system interface",
		"internal/wasi/wasitest":     "an FS in memory",
	},
	"launcher": {
		"internal/home":  "a home of its own for each test",
		"internal/model": "a model that only notes that it was asked",
		"kb/journal":     "what an idle agent takes is measured with the journal that runs use",

		"internal/guest/hostiletest": "attacks beside idle agents",
	},
	"internal/service": {
		"kb/journal": "runs of other processes are followed by their journals",
	},
	"internal/foresight": {
		"caps/policy":    "what it writes is read as operators' files are",
		"hostcalls/gate": "records are those of a real gate",
		"internal/audit": "the same",
	},
}

// An owner is a room that may import something from outside the house.
type owner struct {
	room  string // "*" is every room
	tests bool   // in its tests only
	why   string
}

// outside is who may import which module, by the longest prefix of its path.
// A module that is not in it has not been let in.
var outside = map[string][]owner{
	"github.com/tetratelabs/wazero": {
		{"internal/guest", false, "the only room that knows the engine"},
		{"hostcalls", true, "the empty call that a checked one is measured against"},
		{"internal/meter", true, "both of the engine's engines run what was rewritten"},
		{"internal/jail", true, "the engine's own directory mount is the control of each attack and the measure of each figure"},
		{"internal/wasi", true, "the engine's own WASI is what ours is measured against"},
	},
	"github.com/dgraph-io/badger/v4": {
		{"kb", false, "the only room that knows the database"},
		{"cmd/rlp", true, "who has root changes the log by a program of their own"},
	},
	"github.com/pelletier/go-toml/v2": {{"internal/tomlfile", false, "one strict reader, or keys match without case somewhere"}},
	"github.com/bits-and-blooms/bitset": {
		{"caps", false, "a family is a bitset"},
	},
	"github.com/openai/openai-go/v3": {
		{"internal/model/providers", false, "asks those who speak its protocol; what linking it costs, others do not pay"},
	},
	"github.com/anthropics/anthropic-sdk-go": {
		{"internal/model/providers", false, "asks those who speak its protocol; what linking it costs, others do not pay"},
	},
	"github.com/modelcontextprotocol/go-sdk": {
		{"internal/mcpclient", false, "the only room that speaks with servers of tools"},
		{"internal/mcpclient/mcptest", false, "is such a server"},
		{"internal/mcpserver", false, "is a server of tools itself"},
		{"cmd/rlp", true, "asks rlp mcp as clients do"},
	},
	"github.com/spf13/cobra": {{"cmd/rlp", false, "the command line"}},
	"github.com/spf13/pflag": {{"cmd/rlp", false, "the command line"}},
	"github.com/fxamacker/cbor/v2": {
		{"internal/audit", false, "the bytes of a record"},
		{"kb", false, "the bytes of what is stored"},
		{"kb/wire", false, "the bytes of a message"},
	},
	"github.com/zeebo/blake3": {
		{"internal/blake3", false, "of the whole program"},
		{"kb", false, "digests of what is stored"},
		{"kb/source", false, "digests of documents"},
	},
	"github.com/google/uuid": {
		{"internal/ident", false, "run ids are parsed"},
		{"cmd/rlp", false, "run ids are made"},
	},
	"golang.org/x/mod/sumdb/tlog": {
		{"kb", false, "the tree of the audit log"},
		{"internal/evidence", false, "proofs of the tree"},
	},
	"golang.org/x/mod/sumdb/note": {{"internal/evidence", false, "the only room that signs and believes checkpoints"}},
	"golang.org/x/net/html":       {{"internal/console", true, "pages are read as a browser reads them"}},
	"golang.org/x/net/idna": {
		{"caps", false, "hosts are compared as A-labels"},
		{"caps/policy", true, "the oracle reads hosts on its own"},
	},
	"golang.org/x/text": {
		{"bundles", false, "names that differ only in Unicode form"},
	},
	"golang.org/x/sys/unix": {
		{"internal/access", false, "who is at the other end of a connection"},
		{"internal/meter", true, "what a guest costs is measured in its thread's processor time"},
		{"internal/model/remote", false, "a child inherits no descriptor"},
		{"bundles", false, "opens without following or waiting"},
		{"cmd/rlp", false, "is it a terminal"},
		{"internal/companion", false, "a program in memory"},
		{"internal/guest", false, "guest memory outside the Go heap, limits of the compiling child"},
		{"internal/home", false, "whose file is it"},
		{"internal/jail", false, "openat2"},
		{"internal/lane", false, "descriptors, control groups, filters"},
		{"internal/resident", false, "who is at the other end, and where"},
		{"internal/lane/probe", false, "attempts at what lies outside of a lane"},
		{"internal/tomlfile", false, "opens without following or waiting"},
		{"kb", false, "locks, the peer of a socket"},
		{"kb/journal", false, "the mapped journal and its lock"},
		{"kb/source", false, "opens without waiting"},
		{"kb/wire", false, "the peer of a socket"},
		{"secrets", false, "opens without following, locks of the vault"},
	},
	"go.opentelemetry.io/proto/slim/otlp": {{"internal/export", true, "what is sent is read back as its receivers do"}, {"internal/telemetry", true, "the same"}},
	"google.golang.org/protobuf":          {{"internal/export", true, "the same"}, {"internal/telemetry", true, "the same"}},
	"filippo.io/age":                      {{"secrets", false, "the vault"}},
	"github.com/zalando/go-keyring":       {{"secrets", false, "the keyring of the desktop"}},
	"github.com/santhosh-tekuri/jsonschema/v6": {
		{"caps/policy", true, "the published schema accepts what the reader accepts"},
		{"cmd/rlp", true, "the published schema is one"},
		{"internal/schema", true, "what another reader of schemas says of the same documents"},
	},
	"go.opentelemetry.io/otel":                   {{"internal/telemetry", false, "the only room that knows it"}},
	"charm.land/bubbletea/v2":                    {{"internal/top", false, "the terminal"}},
	"charm.land/lipgloss/v2":                     {{"internal/top", false, "colour, and how wide text is"}},
	"github.com/prometheus/client_golang":        {{"internal/telemetry", false, "metrics as Prometheus reads them"}},
	"github.com/prometheus/client_model":         {{"internal/telemetry", false, "which of them a caller may know"}},
	"github.com/chromedp/chromedp":               {{"internal/console", true, "pages are tried in a browser"}},
	"github.com/chromedp/cdproto":                {{"internal/console", true, "the same"}},
	"github.com/rogpeppe/go-internal/testscript": {{"cmd/rlp", true, "scripts specify the command line"}},
	"github.com/rogpeppe/go-internal/txtar":      {{"*", true, "the corpus is txtar"}},
	"pgregory.net/rapid":                         {{"*", true, "laws are property tests"}},
}

// guarded are packages of the standard library that only some rooms may
// import outside tests.
var guarded = map[string][]owner{
	"C":      {},
	"plugin": {},
	"log":    {{"cmd/rlp", false, "keeps what libraries print away from stderr"}},
	"testing": {
		{"internal/model/modeltest", false, "is for tests of what asks providers"},
		{"agents/sdk/sdktest", false, "is for tests of agents"},
		{"internal/wasi/wasitest", false, "is a suite"},
		{"kb/kbtest", false, "is a suite"},
	},
	"os/exec": {
		{"internal/mcpclient/mcptest", false, "starts what would outlive it"},
		{"internal/evidence", false, "git, as a place outside the host"},
		{"internal/guest", false, "starts the process that compiles"},
		{"internal/lane", false, "asks a lane's own program whether it works here"},
		{"internal/lane/probe", false, "starts what would outlive a lane"},
		{"internal/model/remote", false, "starts the process that asks providers"},
		{"agents/sdk/sdktest", false, "compiles an agent as a guest"},
		{"cmd/rlp", false, "builds an agent from source, starts the owner of the store"},
		{"internal/demo", false, "runs what it shows"},
		{"internal/dist", false, "asks the program for its manual and its completions"},
		{"secrets", false, "the helper program that the operator named"},
	},
	"net": {
		{"internal/access", false, "who is at the other end of a connection"},
		{"internal/api", false, "bounds connections"},
		{"internal/client", false, "the socket of the service"},
		{"cmd/rlp", false, "opens what rlp serve listens at"},
		{"internal/lane/probe", false, "reaches for sockets outside of a lane"},
		{"internal/model/providers", false, "bounds the time to get a connection"},
		{"internal/config", false, "splits the address to listen on"},
		{"internal/demo", false, "listens on loopback"},
		{"internal/egress", false, "resolves and dials"},
		{"kb", false, "the store's private socket"},
		{"kb/wire", false, "the store's private socket"},
	},
	"net/http": {
		{"internal/api", false, "is the service over HTTP"},
		{"internal/client", false, "asks it"},
		{"internal/telemetry", false, "counts requests, serves metrics"},
		{"internal/mcpserver", false, "is a handler"},
		{"internal/access", false, "judges requests"},
		{"cmd/rlp", false, "posts checkpoints, and what is exported; only egress sends"},
		{"internal/console", false, "serves pages"},
		{"internal/mcpclient", false, "the protocol's library speaks it; only egress sends"},
		{"internal/mcpclient/mcptest", false, "is a server"},
		{"internal/model/modeltest", false, "is a server"},
		{"internal/model/providers", false, "asks providers"},
		{"hostcalls", false, "requests and answers have its types; only egress sends"},
		{"internal/demo", false, "the servers that it shows agents with"},
		{"internal/egress", false, "the one transport of guests"},
		{"internal/export", false, "sends spans to the collector that the operator named"},
		{"internal/otlp", false, "the same, and metrics"},
	},
	"syscall": {
		{"internal/early", false, "signals"},
		{"internal/resident", false, "the socket, and who is at its other end"},
		{"internal/mcpclient/mcptest", false, "a session of its own for what it starts"},
		{"internal/model/remote", false, "ends a child with its parent"},
		{"bundles", false, "error numbers, whose file is it"},
		{"cmd/rlp", false, "signals"},
		{"internal/companion", false, "whose file is it"},
		{"internal/egress", false, "error numbers"},
		{"internal/export", false, "one export at a time from a cursor"},
		{"internal/evidence", false, "whose file is it, one publication at a time"},
		{"internal/guest", false, "locks of the compile cache, whose file is it"},
		{"internal/home", false, "whose file is it"},
		{"internal/jail", false, "error numbers"},
		{"internal/lane", false, "starts programs, error numbers"},
		{"internal/lane/probe", false, "sessions and namespaces of what it starts"},
		{"internal/tomlfile", false, "error numbers, whose file is it"},
		{"secrets", false, "whose file is it, ends the helper program with all that it started"},
	},
	"unsafe": {
		{"agents/sdk", false, "pointers of its own memory are what the interface takes"},
		{"caps", false, "looks up a method in place, as a view of a buffer"},
		{"hostcalls", false, "a view of guest memory as a string, valid for one call"},
		{"internal/guest", false, "memory of the guest outside the Go heap"},
		{"internal/jail", false, "directory entries as the kernel writes them"},
		{"internal/lane", false, "what the kernel reads: filters, rule sets"},
		{"internal/lane/probe", false, "what the kernel reads"},
		{"internal/wasi", false, "a view of guest memory as a string, valid for one call"},
		{"kb/journal", false, "the mapped journal"},
	},
	"os": {
		{"internal/api", true, "reads the page that tells of it"},
		{"internal/access", false, "records of tokens are files"},
		{"internal/early", false, "the arguments and variables, before main has them"},
		{"internal/resident", false, "the socket, its lock, and the streams of others"},
		{"internal/mcpclient/mcptest", false, "shows what a server is given, and exits"},
		{"internal/model/remote", false, "the pipe that a child answers on"},
		{"agents/*", false, "a guest's files, arguments and exit"},
		{"agents/sdk", false, "a guest's files, arguments and exit"},
		{"agents/sdk/sdktest", false, "compiles an agent as a guest"},
		{"bundles", false, "reads a bundle once"},
		{"cmd/rlp", false, "the edge"},
		{"internal/companion", false, "finds and extracts a program"},
		{"internal/companion/pack", false, "writes a program"},
		{"internal/config", false, "reads the settings once"},
		{"internal/conformance", false, "reads the tree, writes the table"},
		{"internal/demo", false, "writes the home that it shows"},
		{"internal/dist", false, "reads what was built, writes what is released"},
		{"internal/export", false, "cursors and what is exported are files"},
		{"internal/otlp", false, "certificates are files"},
		{"internal/evidence", false, "the key of the log, files outside the host"},
		{"internal/guest", false, "the compile cache"},
		{"internal/home", false, "makes the home"},
		{"internal/jail", false, "handles of the grants"},
		{"internal/lane", false, "the working folder of a run, links, /proc"},
		{"internal/lane/confined", false, "a program of its own"},
		{"internal/lane/probe", false, "files outside of a lane"},
		{"internal/tomlfile", false, "opens and checks a file"},
		{"kb", false, "the folders of the store"},
		{"kb/journal", false, "journals are files"},
		{"kb/source", false, "reads what is imported"},
		{"kb/kbtest", false, "folders of its own for each test"},
		{"launcher", false, "the working folder and the streams of a run"},
		{"secrets", false, "the files of the vault"},
	},
}

// edge are the functions of the standard library by which a program learns
// where it runs, or ends. Everything else is told, by arguments.
var edge = map[string][]owner{
	"os.Getenv":          edgeOwners,
	"os.LookupEnv":       edgeOwners,
	"os.Environ":         edgeOwners,
	"os.Setenv":          {},
	"os.UserHomeDir":     edgeOwners,
	"os.UserConfigDir":   {},
	"os.UserCacheDir":    {},
	"os.Chdir":           {},
	"os.Args":            edgeOwners,
	"os.Exit":            edgeOwners,
	"os.Stdin":           edgeOwners,
	"os.Stdout":          edgeOwners,
	"os.Stderr":          edgeOwners,
	"fmt.Print":          edgeOwners,
	"fmt.Printf":         edgeOwners,
	"fmt.Println":        edgeOwners,
	"flag.Parse":         edgeOwners,
	"http.DefaultClient": {},
	// What widens has one caller, and what judges is called where a request is
	// at hand.
	"caps.Base":  {{"launcher", false, "the base is made once, in the plan"}},
	".Admit":     gateOwners,
	".AdmitTree": gateOwners,
	"time.Now":   clockOwners,
	"time.Since": clockOwners,
	"time.Until": clockOwners,
}

var edgeOwners = []owner{
	{"cmd/rlp", false, "the composition root"},
	{"internal/early", false, "comes before the composition root"},
	{"agents/*", false, "a program of its own"},
	{"agents/sdk", false, "the guest's side of the system interface"},
	{"agents/sdk/sdktest", false, "compiles an agent as a guest"},
	{"internal/companion/pack", false, "a program of its own"},
	{"internal/lane/confined", false, "a program of its own"},
	{"internal/conformance", false, "a program of its own"},
	{"internal/demo", false, "a program of its own"},
	{"internal/dist", false, "a program of its own"},
	{"internal/mcpclient/mcptest", false, "a program of its own"},
}

var gateOwners = []owner{
	{"hostcalls", false, "each call, before it is done"},
	{"internal/jail", false, "each path, before it is touched"},
	{"launcher", false, "joins the files of a run to its gate"},
}

var clockOwners = []owner{
	{"internal/model/providers", false, "no wait that ends after the deadline"},
	{"internal/model/remote", false, "tells the child what is left of the deadline"},
	{"cmd/rlp", false, "the clock is chosen here"},
	{"agents/*", false, "asks the clock that it was granted"},
	{"internal/guest", false, "the deadline is the host's, measured in host time"},
	{"internal/jail", false, "a time of now, where the system has no word for it"},
	{"internal/lane", false, "deadlines of programs are the host's"},
	{"internal/lane/probe", false, "waits for what it started"},
	{"internal/wasi", false, "the clock of a guest that was granted time"},
	{"kb", false, "deadlines of locks and of a stuck owner"},
	{"kb/journal", false, "the coarse clock that records are stamped by"},
}
