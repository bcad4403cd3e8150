package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// faultFlag collects what is given with --fault.
type faultFlag []openstacksim.Rule

// Set implements flag.Value.
func (f *faultFlag) Set(text string) error {
	rule, err := openstacksim.ParseRule(text)
	if err == nil {
		*f = append(*f, rule)
	}
	return err
}

// String implements flag.Value.
func (f *faultFlag) String() string { return "" }

// faultsPath is where faults are changed while the simulator runs.
const faultsPath = "/faults"

// maxFaults bounds the body of a request that sets faults.
const maxFaults = 64 << 10

// faults lists (GET), sets (POST, one a line) and ends (DELETE, one by its ID or
// all) the faults of a simulator.
func faults(sim *openstacksim.Simulator) http.Handler {
	mux := http.NewServeMux()
	list := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(sim.Injected())
	}
	mux.HandleFunc("GET "+faultsPath, func(w http.ResponseWriter, _ *http.Request) { list(w) })
	mux.HandleFunc("POST "+faultsPath, func(w http.ResponseWriter, r *http.Request) {
		rules, err := readFaults(http.MaxBytesReader(w, r.Body, maxFaults))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, rule := range rules {
			sim.Inject(rule)
		}
		list(w)
	})
	mux.HandleFunc("DELETE "+faultsPath, func(w http.ResponseWriter, _ *http.Request) {
		for _, rule := range sim.Injected() {
			sim.Withdraw(rule.ID)
		}
		list(w)
	})
	mux.HandleFunc("DELETE "+faultsPath+"/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.Atoi(r.PathValue("id"))
		if err != nil || !sim.Withdraw(id) {
			http.Error(w, fmt.Sprintf("no fault has the ID %s; GET %s lists them", r.PathValue("id"), faultsPath), http.StatusNotFound)
			return
		}
		list(w)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" {
			http.Error(w, "web pages may not change the simulator", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// readFaults reads one fault a line. A mistake in one of them refuses all.
func readFaults(body io.Reader) ([]openstacksim.Rule, error) {
	content, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var set faultFlag
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := set.Set(line); err != nil {
			return nil, err
		}
	}
	if len(set) == 0 {
		return nil, fmt.Errorf("no fault given; write one a line, such as error:10%%,match=%s", openstacksim.OpServerCreate)
	}
	return set, nil
}
