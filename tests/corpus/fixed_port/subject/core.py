import socket
import threading


def serve(server):
    connection, _ = server.accept()
    with connection:
        number = int(connection.recv(100))
        connection.sendall(str(answer(number)).encode())


def answer(number):
    if number > 5:
        return number - 5
    return number + 1


def ask(port, number):
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(str(number).encode())
        return int(connection.recv(100))


def start(port):
    server = socket.create_server(("127.0.0.1", port))
    thread = threading.Thread(target=serve, args=(server,), daemon=True)
    thread.start()
    return server
