package lane

// Bounds of what a program gets in the native lane.
const (
	// MaxData bounds the private writable memory of each process, in bytes.
	MaxData = 2 << 30
	// MaxProcesses bounds the processes of a run where a control group can.
	MaxProcesses = 512
)

// A NativeConfig is what a native lane works with.
type NativeConfig struct {
	// Work is the working folder of the run. The first Run makes it, so it is
	// not there before; Close takes it away when nothing is in it.
	Work string
	// ID names the run's control group: letters, digits and "-".
	ID      string
	noGroup bool // for tests: as where no control group can be made
}
