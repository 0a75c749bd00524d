package lane

// A Control is one thing that a lane keeps programs to, or from.
type Control uint8

// The controls, in the order in which `rlp lanes` lists them.
const (
	Filesystem  Control = iota // programs see system programs and what the agent holds, and nothing else
	Links                      // they make and move no link that leads out of what the agent holds
	Network                    // no network, whatever the agent's net grants
	Processes                  // nothing that a program started outlives it
	Memory                     // bounded for all processes together
	Pids                       // so is their number
	Descriptors                // none but stdin, stdout, stderr
	Privileges                 // no capabilities, and none to be gained
	Syscalls                   // calls that only widen what can be attacked are refused
	IPC                        // no signals, tracing, shared memory and queues of others
	UnixSockets                // no services of the machine through sockets
	WallTime                   // the end comes on time
	OutputCaps                 // what is kept of streams is bounded
	NumControls
)

var controlNames = [NumControls]string{
	"filesystem", "links", "network", "processes", "memory", "pids", "descriptors", "privileges", "syscalls", "ipc",
	"unix_sockets", "wall_time", "output_caps",
}

// String is the control's word.
func (c Control) String() string {
	if c < NumControls {
		return controlNames[c]
	}
	return "unknown"
}

// A Label is how well a lane keeps one control, here.
type Label struct {
	Level Level
	// Why is said where the level is not Enforced, and Remedy what the operator
	// can do about it, where there is anything.
	Why, Remedy string
}

// Controls are the labels of a lane. The zero Controls promise nothing.
type Controls [NumControls]Label

func all(level Level, why, remedy string) (c Controls) {
	for i := range c {
		c[i] = Label{Level: level, Why: why, Remedy: remedy}
	}
	return c
}

// asked are the controls that a run must have enforced whose operator has not
// accepted less: all, but memory and processes only where they were asked for, and
// links nowhere: what a lane does not judge of them is said at each launch.
func asked(b Bounds) []Control {
	list := []Control{
		Filesystem, Network, Processes, Descriptors, Privileges, Syscalls, IPC, UnixSockets, WallTime,
		OutputCaps,
	}
	if b.Memory > 0 {
		list = append(list, Memory)
	}
	if b.Pids > 0 {
		list = append(list, Pids)
	}
	return list
}

// Bounds are what the operator asks for of all programs of a run together; 0
// asks for nothing, and the lane's own bounds hold as well as it can.
type Bounds struct {
	Memory int64 // bytes
	Pids   int64
}

// A Level is how well a lane keeps a control.
type Level uint8

// The levels, as `rlp lanes` names them.
const (
	Unsupported Level = iota
	BestEffort
	Enforced
)

// String is the level's word.
func (l Level) String() string {
	switch l {
	case BestEffort:
		return "best_effort"
	case Enforced:
		return "enforced"
	}
	return "unsupported"
}
