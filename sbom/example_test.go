package sbom_test

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/sbom"
)

// The executable of the running program is described, and the document is
// written as SPDX.
func Example() {
	path, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	exe, err := sbom.ReadFile(path, sbom.Options{})
	if err != nil {
		log.Fatal(err)
	}
	doc, err := sbom.New(sbom.Info{
		Name: "example.com/plugins/demo", Version: "1.2.3", Created: time.Unix(1700000000, 0),
		Tool: "fleeting-plugin", ToolVersion: "1.0.0",
	}, exe)
	if err != nil {
		log.Fatal(err)
	}
	raw, err := doc.SPDX()
	if err != nil {
		log.Fatal(err)
	}
	var written struct {
		Name         string `json:"name"`
		SPDXVersion  string `json:"spdxVersion"`
		CreationInfo struct {
			Created string `json:"created"`
		} `json:"creationInfo"`
	}
	if err := json.Unmarshal(raw, &written); err != nil {
		log.Fatal(err)
	}
	fmt.Println(written.SPDXVersion, written.Name, written.CreationInfo.Created)
	// Output: SPDX-2.3 example.com/plugins/demo-1.2.3 2023-11-14T22:13:20Z
}
