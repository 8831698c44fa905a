// Bench of vt024_uart_transmitter: UART transmitter with parity.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_tx;
    int errortime_tx;
    int errors_busy;
    int errortime_busy;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       reset;
  logic       start;
  logic [7:0] data;
  logic [1:0] parity_mode;
  wire        tx_ref;
  wire        tx_dut;
  wire        busy_ref;
  wire        busy_dut;

  RefModule good1 (
    .clk(clk),
    .reset(reset),
    .start(start),
    .data(data),
    .parity_mode(parity_mode),
    .tx(tx_ref),
    .busy(busy_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .reset(reset),
    .start(start),
    .data(data),
    .parity_mode(parity_mode),
    .tx(tx_dut),
    .busy(busy_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire        open_tx = tx_ref ^ tx_ref;
  wire        match_tx = (tx_dut ^ open_tx) === (tx_ref ^ open_tx);
  wire        open_busy = busy_ref ^ busy_ref;
  wire        match_busy = (busy_dut ^ open_busy) === (busy_ref ^ open_busy);
  wire        tb_match = match_tx && match_busy;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_tx) begin
      if (stats1.errors_tx == 0) stats1.errortime_tx = $time;
      stats1.errors_tx = stats1.errors_tx + 1;
    end
    if (!match_busy) begin
      if (stats1.errors_busy == 0) stats1.errortime_busy = $time;
      stats1.errors_busy = stats1.errors_busy + 1;
    end
  end

  integer i;
  task send(input [7:0] what, input [1:0] parity, input integer hold);
    begin
      start <= 1'b1;
      data <= what;
      parity_mode <= parity;
      @(posedge clk);
      // Inputs that must be ignored while busy.
      start <= 1'b0;
      repeat (hold) @(posedge clk) begin
        start <= ($random & 3) == 0;
        data <= $random;
        parity_mode <= $random;
      end
      start <= 1'b0;
    end
  endtask

  initial begin
    reset <= 1'b1;
    start <= 1'b1;
    data <= 8'h00;
    parity_mode <= 2'd0;
    repeat (2) @(posedge clk);
    reset <= 1'b0;
    start <= 1'b0;
    repeat (3) @(posedge clk);
    for (i = 0; i < 4; i = i + 1) begin
      send(8'h35 + 8'h41 * i, i, 36);
      repeat (12) @(posedge clk);
    end
    // Held start: frames as close as they can be.
    start <= 1'b1;
    data <= $random;
    parity_mode <= 2'd0;
    repeat (41) @(posedge clk);
    data <= $urandom;
    parity_mode <= 2'd2;
    repeat (45) @(posedge clk);
    start <= 1'b0;
    repeat (44) @(posedge clk);
    // A reset in the middle of a frame, with start held.
    send($random, 2'd1, 14);
    reset <= 1'b1;
    start <= 1'b1;
    @(posedge clk) reset <= 1'b0;
    start <= 1'b0;
    repeat (3) @(posedge clk);
    for (i = 0; i < 9; i = i + 1) begin
      send($random, $urandom, 30 + ($random & 15));
      repeat (10 + ($random & 7)) @(posedge clk);
    end
    @(negedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_tx != 0)
      $display("Hint: Output 'tx' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_tx, stats1.errortime_tx);
    else
      $display("Hint: Output 'tx' has no mismatches.");
    if (stats1.errors_busy != 0)
      $display("Hint: Output 'busy' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_busy, stats1.errortime_busy);
    else
      $display("Hint: Output 'busy' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
