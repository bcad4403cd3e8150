package plugin

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
)

// maxUserData is Nova's limit, in characters of base64.
const maxUserData = 65535

// loadUserData returns the user data to create servers with, compressed if it
// is too long otherwise.
func (s *ServerConfig) loadUserData() ([]byte, *Problem) {
	key, data := "server.user_data", []byte(s.UserData)
	if s.UserDataFile != "" {
		key = "server.user_data_file"
		content, err := os.ReadFile(s.UserDataFile)
		if err != nil {
			return nil, &Problem{key, err.Error()}
		}
		// An editor's mark would hide the first line, which says what it is.
		if data, err = textfile.Unmarked(content); err != nil {
			return nil, &Problem{key, fmt.Sprintf("%s: %v", s.UserDataFile, err)}
		}
	}
	if base64.StdEncoding.EncodedLen(len(data)) <= maxUserData {
		return data, nil
	}
	if !compressible(data) {
		return nil, &Problem{key, fmt.Sprintf("has %d bytes; Nova takes %d, and this format may not be compressed",
			len(data), base64.StdEncoding.DecodedLen(maxUserData/4*4))}
	}
	packed := compress(data)
	if base64.StdEncoding.EncodedLen(len(packed)) > maxUserData {
		return nil, &Problem{key, fmt.Sprintf("has %d bytes, %d compressed; Nova takes %d",
			len(data), len(packed), base64.StdEncoding.DecodedLen(maxUserData/4*4))}
	}
	return packed, nil
}

// compressible tells the formats that cloud-init unpacks. Ignition (JSON)
// reads no gzip from user data, and what is compressed already must not be
// compressed twice.
func compressible(data []byte) bool {
	trimmed := bytes.TrimLeft(data, " \t\r\n\ufeff")
	return !bytes.HasPrefix(trimmed, []byte("{")) && !bytes.HasPrefix(data, []byte{0x1f, 0x8b})
}

// compress gives the same bytes for the same data.
func compress(data []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(data)                                  // a buffer does not fail
	_ = w.Close()
	return b.Bytes()
}

// hidden are the texts of servers that no message may show. What is wrong with
// user data is said elsewhere.
func (s *ServerConfig) hidden() []string {
	data, _ := s.loadUserData()
	return append(slices.Collect(maps.Values(s.Metadata)), s.UserData, string(data))
}
