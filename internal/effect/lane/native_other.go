//go:build !linux

package lane

// Native says that the native lane is for Linux: elsewhere nothing finds the
// processes that left their group.
func Native(Config) (Lane, error) {
	return nil, &UnsupportedError{Lane: "native", Why: "it needs Linux"}
}

// Interpreter is what interprets the script at path; nothing is run here.
func Interpreter(string) string { return "" }
