// SPDX-License-Identifier: Apache-2.0

// Google's client of Cloud Tasks for Go, over REST: makes a queue and a task in it, and asks for what is not there.
// Usage: tasks HOST:PORT TOKEN QUEUE URL. Prints what it got as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path"
	"time"

	cloudtasks "cloud.google.com/go/cloudtasks/apiv2"
	pb "cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/api/option"
	"google.golang.org/protobuf/types/known/timestamppb"
)

type bearer string

func (token bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(request)
}

func must(err error) {
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
}

func main() {
	address, token, name, url := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	client, err := cloudtasks.NewRESTClient(ctx, option.WithEndpoint("http://"+address),
		option.WithHTTPClient(&http.Client{Transport: bearer(token)}))
	must(err)
	defer client.Close()
	parent := path.Dir(path.Dir(name))
	queue, err := client.CreateQueue(ctx, &pb.CreateQueueRequest{Parent: parent, Queue: &pb.Queue{
		Name: name, RetryConfig: &pb.RetryConfig{MaxAttempts: 3}}})
	must(err)
	task, err := client.CreateTask(ctx, &pb.CreateTaskRequest{Parent: name, Task: &pb.Task{
		Name:         name + "/tasks/from-go",
		ScheduleTime: timestamppb.Now(),
		MessageType: &pb.Task_HttpRequest{HttpRequest: &pb.HttpRequest{Url: url, HttpMethod: pb.HttpMethod_PUT,
			Headers: map[string]string{"Content-Type": "application/json"}, Body: []byte(`{"from":"go"}`)}}}})
	must(err)
	_, err = client.GetQueue(ctx, &pb.GetQueueRequest{Name: parent + "/queues/missing"})
	var failed *apierror.APIError
	reason := ""
	if errors.As(err, &failed) {
		reason = failed.GRPCStatus().Code().String()
		if failed.HTTPCode() > 0 {
			reason = http.StatusText(failed.HTTPCode())
		}
	}
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{"queue": queue.GetName(), "attempts": queue.GetRetryConfig().GetMaxAttempts(),
		"state": queue.GetState().String(), "task": task.GetName(), "method": task.GetHttpRequest().GetHttpMethod().String(), "missing": reason}))
}
