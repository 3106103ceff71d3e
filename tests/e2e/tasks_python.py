# SPDX-License-Identifier: Apache-2.0
"""Google's client of Cloud Tasks for Python, over REST: makes a queue and a task in it, and asks for what is not there. tasks.py starts it.

Usage: tasks_python.py HOST:PORT TOKEN QUEUE URL. Prints what it got as JSON."""
import datetime
import json
import sys

from google.api_core.exceptions import NotFound
from google.cloud import tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksRestTransport
from google.oauth2.credentials import Credentials
from google.protobuf import timestamp_pb2

address, token, name, url = sys.argv[1:]
client = tasks_v2.CloudTasksClient(transport=CloudTasksRestTransport(host=address, credentials=Credentials(token), url_scheme="http"))
parent = name.rsplit("/queues/", 1)[0]
queue = client.create_queue(parent=parent, queue=tasks_v2.Queue(name=name, retry_config=tasks_v2.RetryConfig(max_attempts=3)))
now = timestamp_pb2.Timestamp()
now.FromDatetime(datetime.datetime.now(datetime.timezone.utc))
task = client.create_task(parent=name, task=tasks_v2.Task(
    name=name + "/tasks/from-python", schedule_time=now,
    http_request=tasks_v2.HttpRequest(url=url, http_method=tasks_v2.HttpMethod.PUT, headers={"Content-Type": "application/json"},
                                      body=b'{"from":"python"}')))
try:
    client.get_queue(name=parent + "/queues/missing")
    missing = None
except NotFound:
    missing = "Not Found"
print(json.dumps({"queue": queue.name, "attempts": queue.retry_config.max_attempts, "state": queue.state.name, "task": task.name,
                  "method": task.http_request.http_method.name, "missing": missing}))
