package entry

import "bytes"

// Closes reports whether a note ends with a complete closure block: four lines
// in their order, none empty, with nothing but blank lines after. It reads
// only the end of the note; [FindClosure] tells what is wrong with others.
func Closes(b []byte) (updated string, ok bool) {
	for k := len(closureKeys) - 1; k >= 0; k-- {
		if k == len(closureKeys)-1 {
			b = bytes.TrimRight(b, " \t\r\n")
		}
		at := bytes.LastIndexByte(b, '\n') + 1
		line := bytes.TrimSpace(b[at:])
		key := closureKeys[k]
		if len(line) <= len(key) || string(line[:len(key)]) != key || line[len(key)] != ':' {
			return "", false
		}
		value := bytes.TrimSpace(line[len(key)+1:])
		if len(value) == 0 {
			return "", false
		}
		if k == 0 {
			return string(value), true
		}
		if at == 0 {
			return "", false
		}
		b = b[:at-1]
	}
	return "", false
}
