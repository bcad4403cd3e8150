package openstacksim_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// A cloud whose first create takes effect but loses its answer.
func Example() {
	sim, err := openstacksim.New(openstacksim.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	sim.FailNth(openstacksim.OpServerCreate, 1, openstacksim.CommitThenStatus(http.StatusGatewayTimeout))

	client := &http.Client{Transport: sim.Transport()} // or httptest.NewServer(sim)
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://simulator/identity/v3", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	response, err := client.Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = response.Body.Close()
	fmt.Println(response.Status, sim.Count("identity:*"), len(sim.Snapshot().Servers))
	fmt.Println(strings.Contains(string(sim.CloudsYAML("http://simulator")), "simulator-appcred"))
	// Output:
	// 200 OK 1 0
	// true
}
