package sandbox

// How a program uses a path, as a broker tells it.
const (
	Looks  = 's' // at what is there
	Reads  = 'r'
	Lists  = 'l' // a folder
	Writes = 'w' // what is there
	Makes  = 'm' // the entry, removes or moves it
)

// Using begins the line that tells it: a letter, whether there is such a thing where
// the program is, "+" or "-", and the path in quotes.
const Using = "using "
