// Package lane is where programs run. A [Lane] starts one program at a time,
// gives it exactly what its [Command] says, and ends it with everything that it
// started before [Lane.Run] returns.
//
// A lane does not decide: which program may run was judged before. What a lane
// can keep a program from, and how well, it says itself: [Lane.Controls].
package lane

import (
	"context"
	"os"
	"syscall"
	"time"
)

// A Lane runs the programs of one run of an agent, one at a time.
type Lane interface {
	// Name is the lane's word in config.toml.
	Name() string
	// Check tries whether the lane works here, without a program, before a run
	// begins. What is missing is an [UnsupportedError].
	Check(ctx context.Context) error
	// Controls are what the lane promises. They are known after Check.
	Controls() Controls
	// Run starts the program and waits for its end, at the latest until the
	// command's timeout is over or ctx ends; then it and all that it started
	// are ended. The end of the time is a result, the end of ctx an error, beside
	// which a lane may tell what the program wrote until then.
	Run(ctx context.Context, c *Command) (*Result, error)
	// Close ends what is left and gives up what the lane holds.
	Close() error
}

// A Finder is a lane whose programs are not simply those of this machine.
type Finder interface {
	// Find is [Find] in what programs of the lane see.
	Find(written string, closed ...string) (Found, error)
}

// A Command is one program to run, decided and complete.
type Command struct {
	// Program is the canonical path of the file: no part of it is a link.
	Program string
	// SHA256 is what the program holds, in hex: it is read by the descriptor that is
	// executed, and another file is refused. "": that is not known. Lanes without a root of
	// their own refuse a program of which it is.
	SHA256 string
	// Argv are the arguments; the first is what the program is told that it is called.
	Argv []string
	// Env is the whole environment but for what the lane says of itself, NAME=value.
	Env []string
	// Folders are what the agent holds of the operator's files now, by path: a
	// lane that enforces the control Filesystem shows programs at most that.
	Folders []Folder
	// Leased are paths that stay where they are, with all that lies within them and
	// all that holds them: a program neither moves nor links them.
	Leased []string
	// Protected are names that the program leaves as they are in all that it writes but
	// folders of its own: one part of a path or more, "*" for any but the first.
	Protected []string
	// Executes bounds what the program executes, and what that does, beside itself and what
	// interprets it; nil: whatever it sees. Lanes without a root of their own bound nothing.
	Executes *Executables
	// Asked decides about each other file that the program wants to execute, before it
	// is, once or, with Each, every time: written says that the program could have written
	// it. What is executed beside is what Executes says: a program that changes its
	// arguments at the right moment is asked about another file than it executes. Where
	// no broker can ask, nobody does.
	Asked func(file string, written bool) bool
	Each  bool
	// Used is told of each path that the program uses, and how: a letter of package
	// sandbox, and whether there is such a thing where the program is. nil: nobody is. It
	// takes Asked, and makes what names a path slow.
	Used func(how byte, there bool, path string)
	// Dir is where the program starts, relative to the working folder of the
	// run or an absolute path in it; "" is that folder.
	Dir string
	// Cwd is where the program starts instead: the absolute path of a folder that it
	// sees. Lanes without a root of their own have none.
	Cwd string
	// Stdin is what the program reads.
	Stdin []byte
	// Timeout is more than 0, or 0 where Live is given: no end by time.
	Timeout time.Duration
	// MaxOutput is what is kept of each stream, in bytes; what comes after it is
	// read and thrown away.
	MaxOutput int
	// Network is what the program gets instead of none; nil: none. A lane that has
	// none to give refuses the program with an [UnsupportedError].
	Network *OwnNetwork

	// Live lets the program's streams pass through while it runs; nil: they are kept
	// alone. A lane that cannot do so refuses the program with an [UnsupportedError].
	Live *Live

	// Pipes are what [Start] gives the program for stdin and stdout; nil: Stdin is
	// what it reads, and what it writes is kept.
	Pipes *Pipes
}

// A Result is how a program ended.
type Result struct {
	// ExitCode is the program's own, or 128 and the signal that ended it.
	ExitCode int
	// Signal is what ended the program, 0 where it exited. Engines of containers do
	// not tell the two apart: there it is what an exit code above 128 says.
	Signal syscall.Signal
	// TimedOut says that the time was over, and the program was ended.
	TimedOut bool
	// OutOfMemory says that the program, or something that it started, was ended
	// because together they had all the memory that they get.
	OutOfMemory    bool
	Stdout, Stderr Output
}

// An Output is what a program wrote to one stream.
type Output struct {
	Data []byte
	Cut  bool // there was more than the lane keeps
}

// A Maker makes the lane of one run. It starts nothing.
type Maker interface {
	Lane(cfg Config) (Lane, error)
}

// A Config is what a lane of one run works with.
type Config struct {
	// Work is the working folder of the run. The first Run makes it, so it is
	// not there before; Close takes it away when nothing is in it.
	Work string
	// ID names the run's control group: letters, digits and "-".
	ID string
	// Self is the command that becomes [Confined] when it is started: a path
	// and the arguments, the first of them its name.
	Self []string
	// Folders are what the agent holds when the run begins: what a lane cannot
	// keep of that is known before.
	Folders []Folder
	// Leased is that of [Command] when the run begins.
	Leased []string
	// Protected is that of [Command] when the run begins.
	Protected []string
	// Untrusted are paths that the operator calls so, canonical: no program puts a
	// link there, or above, nor moves or removes such a folder.
	Untrusted []string
	// Bounds are asked for by the operator: a lane that cannot enforce them is
	// not taken.
	Bounds Bounds
	// Executes says that what programs execute is bounded: a lane that cannot do that is
	// not taken.
	Executes bool
	// Network says that programs get a network of their own: a lane that has none to
	// give is not taken.
	Network bool
	// Container makes the lane "container"; nil: there is none.
	Container Maker

	noGroup bool // for tests: as where no control group can be made
	noScope bool // for tests: as where Landlock does not bound signals
	noLinks bool // for tests: as where no broker judges links
}

// Pipes are a program's own ends of its standard input and output.
type Pipes struct {
	Stdin, Stdout *os.File
	stderr        Output // what it wrote there, however it ended
}

// Keep keeps what the program wrote to stderr, for [Process.Stderr].
func (p *Pipes) Keep(stderr Output) {
	if p != nil {
		p.stderr = stderr
	}
}

// Close closes them: the program has its own handles, or never begins.
func (p *Pipes) Close() {
	if p != nil {
		_, _ = p.Stdin.Close(), p.Stdout.Close()
	}
}
