package printable

import "strconv"

// Count is a number and what it counts, such as "1 run" and "2 runs". What names one,
// and takes an s where there are more.
func Count[N int | int64 | uint64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(int64(n), 10) + " " + one + "s"
}
