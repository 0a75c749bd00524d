//go:build !linux

package lane

// Container says that containers are started on Linux: elsewhere they run in a
// machine of their own, which does not have the agent's files.
func Container(Config) (Lane, error) {
	return nil, &UnsupportedError{Lane: "container", Why: "it needs Linux"}
}
