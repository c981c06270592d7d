// Makes a job, runs it once, and waits for the run's end, by REST and the standard library alone:
//
//	go run . http://127.0.0.1:7480
//
// Names are those of /api/openapi.json. A change has an Idempotency-Key, so it may be sent again.
package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"time"
)

// Job is a part of the schema Job: what is read here.
type Job struct {
	Key    string `json:"key"`
	Status string `json:"status"`
}

// JobSpec is a part of the schema JobSpec: what is set here.
type JobSpec struct {
	Schedule string `json:"schedule"`
}

// NewJob is the body of CreateJob.
type NewJob struct {
	Module string  `json:"module"`
	Verb   string  `json:"verb"`
	Name   string  `json:"name"`
	Spec   JobSpec `json:"spec"`
}

// Activation is a run that waits, or has begun. An int64 is a text in JSON.
type Activation struct {
	ExecutionID int64 `json:"execution_id,string"`
}

// Execution is a part of the schema Execution.
type Execution struct {
	ID      int64  `json:"id,string"`
	Outcome string `json:"outcome"`
}

// Executions is the answer of ListExecutions.
type Executions struct {
	Executions []Execution `json:"executions"`
}

// OutputChunk is one line of FollowExecution. The last one has the execution.
type OutputChunk struct {
	Data      []byte     `json:"data"`
	Execution *Execution `json:"execution"`
}

// Problem is what a controller refuses with. Decide by Reason; its other words are for people.
type Problem struct {
	Status  int    `json:"status"`
	Reason  string `json:"reason"`
	Detail  string `json:"detail"`
	Outcome string `json:"outcome"`
}

func (p *Problem) Error() string { return fmt.Sprintf("%s: %s", p.Reason, p.Detail) }

// Client asks the controller at a URL like http://127.0.0.1:7480.
type Client struct {
	URL   string
	Token string
}

const (
	tries = 8
	pause = 200 * time.Millisecond
	apart = "/api/v1/cron"
)

// Call asks, and asks again where that is safe: a change has a key, so it is done once. A nil body is a GET.
//
// Who has no key left (10,000 a day) goes on without: an answer that is lost then is an error.
func (c *Client) Call(path string, body, answer any) error {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	key, maybe := hex.EncodeToString(random), false // maybe: a try may have done it
	for tried := 1; ; tried++ {
		response, err := c.send(path, body, key)
		if err == nil {
			err = read(response, answer)
		}
		var problem *Problem
		said := errors.As(err, &problem) && problem.Reason != "" // by a controller, not by a proxy
		if said && problem.Reason == "TOO_MANY_KEYS" && key != "" && !maybe {
			key = ""
			continue
		}
		maybe = maybe || !said
		refused := said && problem.Status < 500 && problem.Status != 429 && problem.Reason != "KEY_IN_USE"
		repeats := body == nil || key != "" || said && problem.Outcome == "" // without an outcome nothing was done
		if err == nil || refused || !repeats || tried >= tries {
			return err
		}
		time.Sleep(pause << tried)
	}
}

func (c *Client) send(path string, body any, key string) (*http.Response, error) {
	method, content := http.MethodGet, io.Reader(nil)
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		method, content = http.MethodPost, bytes.NewReader(raw)
	}
	request, err := http.NewRequest(method, c.URL+apart+path, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if body != nil && key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	return http.DefaultClient.Do(request)
}

func read(response *http.Response, answer any) error {
	defer response.Body.Close()
	if response.StatusCode < 300 {
		return json.NewDecoder(response.Body).Decode(answer)
	}
	problem := &Problem{Status: response.StatusCode}
	if err := json.NewDecoder(response.Body).Decode(problem); err != nil {
		return err
	}
	return problem
}

// Follow waits for the end of an execution, and prints what it prints.
func (c *Client) Follow(id int64) (*Execution, error) {
	response, err := c.send(fmt.Sprintf("/executions/%d/output", id), nil, "")
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		return nil, read(response, nil)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 { // it says that it is still there
			continue
		}
		var chunk OutputChunk
		if err := json.Unmarshal(lines.Bytes(), &chunk); err != nil {
			return nil, err
		}
		os.Stderr.Write(chunk.Data)
		if chunk.Execution != nil {
			return chunk.Execution, nil
		}
	}
	return nil, fmt.Errorf("the stream ended before the execution: %v", lines.Err())
}

func run(client *Client) error {
	var job Job
	spec := JobSpec{Schedule: "every 2h"}
	if err := client.Call("/jobs", NewJob{"billing", "close_day", "by-go", spec}, &job); err != nil {
		return err
	}
	var started Activation
	path := "/jobs/" + url.PathEscape(job.Key) + "/trigger"
	if err := client.Call(path, map[string]string{"note": "by Go"}, &started); err != nil {
		return err
	}
	id := started.ExecutionID
	for id == 0 {
		time.Sleep(pause)
		var found Executions
		query := "/executions?page_size=1&filter.job=" + url.QueryEscape(job.Key)
		if err := client.Call(query, nil, &found); err != nil {
			return err
		}
		if len(found.Executions) > 0 {
			id = found.Executions[0].ID
		}
	}
	ended, err := client.Follow(id)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s\n", job.Key, ended.Outcome)
	return nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: go run . http://HOST:PORT")
	}
	if err := run(&Client{URL: os.Args[1], Token: os.Getenv("CRONRING_TOKEN")}); err != nil {
		log.Fatal(err)
	}
}
