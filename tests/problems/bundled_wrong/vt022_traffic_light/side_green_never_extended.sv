// Wrong: side green always lasts five cycles.
module TopModule (
  input  logic       clk,
  input  logic       rst_n,
  input  logic       car,
  input  logic       walk,
  output logic [2:0] main_light,
  output logic [2:0] side_light,
  output logic       walk_on
);

  localparam [2:0] MAIN_GREEN = 3'd0, MAIN_YELLOW = 3'd1, RED_BEFORE_SIDE = 3'd2,
                   SIDE_GREEN = 3'd3, SIDE_YELLOW = 3'd4, RED_BEFORE_MAIN = 3'd5;

  logic [2:0] phase;
  logic [3:0] cycle;
  logic       request;
  logic       walking;
  logic       done;

  always_comb begin
    case (phase)
      MAIN_GREEN:  done = (cycle >= 4'd8) && (car || request);
      MAIN_YELLOW: done = (cycle == 4'd3);
      SIDE_GREEN:  done = (cycle == 4'd5);
      SIDE_YELLOW: done = (cycle == 4'd2);
      default:     done = 1'b1;
    endcase
  end

  always_ff @(posedge clk or negedge rst_n) begin
    if (!rst_n) begin
      phase <= MAIN_GREEN;
      cycle <= 4'd1;
      request <= 1'b0;
      walking <= 1'b0;
    end else begin
      if (walk) request <= 1'b1;
      if (done) begin
        cycle <= 4'd1;
        phase <= (phase == RED_BEFORE_MAIN) ? MAIN_GREEN : phase + 3'd1;
        if (phase == RED_BEFORE_SIDE) begin
          walking <= request || walk;
          request <= 1'b0;
        end
      end else if (cycle != 4'd15) begin
        cycle <= cycle + 4'd1;
      end
    end
  end

  assign main_light = (phase == MAIN_GREEN) ? 3'b001 : (phase == MAIN_YELLOW) ? 3'b010 : 3'b100;
  assign side_light = (phase == SIDE_GREEN) ? 3'b001 : (phase == SIDE_YELLOW) ? 3'b010 : 3'b100;
  assign walk_on = (phase == SIDE_GREEN) && walking && (cycle <= 4'd4);

endmodule
