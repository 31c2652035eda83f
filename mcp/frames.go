package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxFrame bounds one message of a client, in bytes.
const maxFrame = 8 << 20

// Frames passes on the lines of a client that are messages. For the others it
// writes the answer that JSON-RPC wants, and the session goes on: the SDK ends
// it. reply must not mix with what the server writes.
func Frames(r io.Reader, reply func([]byte)) io.Reader {
	in := bufio.NewReaderSize(r, 64<<10)
	out, to := io.Pipe()
	go func() {
		for {
			line, long, err := readLine(in)
			if code, why := frame(line, long); code != 0 {
				reply(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`+"\n", code, why))
			} else if len(line) > 0 {
				if _, werr := to.Write(append(line, '\n')); werr != nil {
					return
				}
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				to.CloseWithError(err)
				return
			}
		}
	}()
	return out
}

// readLine reads a line, without keeping more of it than a frame may have.
func readLine(in *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxFrame {
			long = true
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), long, err
		}
	}
}

// frame says what is wrong with a message, by the codes of JSON-RPC.
func frame(line []byte, long bool) (code int, why string) {
	if long {
		return -32600, fmt.Sprintf("a message has more than %d bytes", maxFrame)
	}
	if len(line) == 0 {
		return 0, ""
	}
	if !json.Valid(line) {
		return -32700, "no JSON"
	}
	var m struct {
		Version string          `json:"jsonrpc"`
		Method  *string         `json:"method"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" || m.Method == nil && m.Result == nil && m.Error == nil {
		return -32600, "no request of JSON-RPC 2.0"
	}
	return 0, ""
}
